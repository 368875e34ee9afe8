"""The provider around a scripted model: what it sends, what it makes of answers, who waits for whom."""

import threading
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from runtime.history.rows.overflow import is_context_overflow, stated_sizes
from runtime.providers.local.engine import Engine, EngineError, Launch
from runtime.providers.local.provider import LocalProvider, create
from runtime.providers.settings import ProviderSettings
from runtime.values.errors import ConfigError, ProviderError, ProviderErrorKind
from runtime.values.model import CallPart, ModelRequest, Part, Segment, StopPart, TextPart
from runtime.values.rows import Row, ToolCall, ToolSpec
from tests.runtime.providers.local.fake_llama import FakeServer, error_event, text_event

LIST_DIR = ToolSpec("list_dir", "List.", '{"type":"object","properties":{}}')
OVERFLOW = error_event(
    400,
    "exceed_context_size_error",
    "request (5031 tokens) exceeds the available context size (2048 tokens), try increasing it",
)


@pytest.fixture
def gguf(tmp_path: Path) -> str:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF")
    return str(path)


def provider(gguf: str, engine: Engine | FakeServer, **options: object) -> LocalProvider:
    made = engine.engine() if isinstance(engine, FakeServer) else engine
    settings = ProviderSettings("one", "local", model=gguf, options=options)
    return LocalProvider(settings, start=lambda launch: made)


def ask(
    *rows: Row, tools: tuple[ToolSpec, ...] = (), model: str = "", limit: int | None = None
) -> ModelRequest:
    return ModelRequest(model, (Segment(rows or (Row("user", "hi"),)),), tools, limit)


async def parts_of(model: LocalProvider, request: ModelRequest) -> list[Part]:
    got: list[Part] = []
    await gather(model, request, got)
    return got


async def gather(model: LocalProvider, request: ModelRequest, into: list[Part]) -> None:
    with trio.fail_after(10):
        async with model.stream(request) as batches:
            async for batch in batches:
                into += batch


async def failure(model: LocalProvider) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await parts_of(model, ask())
    return caught.value


async def test_what_is_sent(gguf):
    server = FakeServer()
    model = provider(gguf, server, extra_body={"temperature": 0})
    await parts_of(model, ask(Row("system", "s"), Row("user", "hi"), limit=7))
    (body,) = server.bodies
    assert body["stream"] is True
    assert (body["max_tokens"], body["temperature"], body["return_progress"]) == (7, 0, True)
    assert body["stream_options"] == {"include_usage": True}
    assert body["messages"] == [{"role": "system", "content": "s"}, {"role": "user", "content": "hi"}]
    assert "response_format" not in body


@pytest.mark.parametrize(
    ("native", "wanted", "guided"),
    [(False, None, True), (True, None, False), (True, True, True), (False, False, False)],
)
async def test_who_is_guided(gguf, native, wanted, guided):
    server = FakeServer()
    options = {} if wanted is None else {"guided_tools": wanted}
    model = provider(gguf, server.engine(native_tools=native), **options)
    await parts_of(model, ask(tools=(LIST_DIR,)))
    assert ("response_format" in server.bodies[0], "tools" in server.bodies[0]) == (guided, not guided)


async def test_a_guided_call(gguf):
    pieces = ['{"tool": "list_dir",', ' "arguments": {"path": "."}}']
    server = FakeServer([*map(text_event, pieces), text_event("", "stop")])
    got = await parts_of(provider(gguf, server), ask(tools=(LIST_DIR,)))
    (call,) = [part.call for part in got if isinstance(part, CallPart)]
    assert (call.name, call.arguments) == ("list_dir", '{"path":"."}')
    assert got[-1] == StopPart("tool_calls")


async def test_without_tools_old_calls_are_still_text(gguf):
    server = FakeServer([text_event('{"answer": "ok"}'), text_event("", "stop")])
    called = Row("assistant", "", (ToolCall("a", "list_dir", "{}"),))
    got = await parts_of(
        provider(gguf, server), ask(Row("user", "x"), called, Row("tool", "r", tool_call_id="a"))
    )
    assert got[0] == TextPart("ok")
    assert "anyOf" not in server.bodies[0]["response_format"]["json_schema"]["schema"]


async def test_an_overflow_is_the_servers_own(gguf):
    error = await failure(provider(gguf, FakeServer([OVERFLOW])))
    assert (error.kind, error.status, error.retryable) == (ProviderErrorKind.BAD_REQUEST, 400, False)
    assert is_context_overflow(error)
    sizes = stated_sizes(error)
    assert (sizes.limit, sizes.requested) == (2048, 5031)


async def test_an_error_behind_text_keeps_the_text(gguf):
    model = provider(gguf, FakeServer([text_event("half"), error_event(500, "server_error", "secret")]))
    got: list[Part] = []
    with pytest.raises(ProviderError) as caught:
        await gather(model, ask(), got)
    assert got == [TextPart("half")]
    assert caught.value.status == 500
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("refusal", [ValueError("'messages' is odd"), RuntimeError("no JSON")])
async def test_a_request_that_the_library_refuses(gguf, refusal):
    error = await failure(provider(gguf, FakeServer(refusal=refusal)))
    assert (error.kind, error.detail) == (ProviderErrorKind.BAD_REQUEST, str(refusal))


async def test_an_answer_without_an_end_was_dropped(gguf):
    error = await failure(provider(gguf, FakeServer([text_event("half")])))
    assert error.kind is ProviderErrorKind.STREAM_DROPPED


async def test_leaving_ends_the_work_at_its_next_event(gguf):
    server = FakeServer([text_event("a")], hang=True)
    model = provider(gguf, server)
    with trio.fail_after(10):
        async with model.stream(ask()) as batches:
            async for _ in batches:
                break
        assert await trio.to_thread.run_sync(server.ended.wait, 5)
        server.hang = False
        server.events = (text_event("next"), text_event("", "stop"))
        assert (await parts_of(model, ask()))[0] == TextPart("next")


async def test_cancelling_does_not_wait_for_the_thread(gguf):
    held, entered = threading.Event(), threading.Event()

    class Stuck(FakeServer):
        def handle_chat_completions(self, body, callback):
            entered.set()
            held.wait(10)
            super().handle_chat_completions(body, callback)

    server = Stuck()
    model = provider(gguf, server.engine())
    with trio.fail_after(5):
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(parts_of, model, ask())
                await trio.to_thread.run_sync(entered.wait, 5)
                scope.cancel()
        assert not server.ended.is_set()
        held.set()
        assert StopPart("end") in await parts_of(model, ask())
    assert len(server.bodies) == 2


async def test_requests_are_answered_in_the_order_of_their_arrival(gguf):
    server = FakeServer()
    model = provider(gguf, server)
    async with trio.open_nursery() as nursery:
        for number in range(6):
            nursery.start_soon(parts_of, model, ask(Row("user", str(number))))
            await wait_all_tasks_blocked(0.001)
    assert [body["messages"][0]["content"] for body in server.bodies] == list("012345")


async def test_one_model_serves_all_and_another_takes_its_place(gguf, tmp_path):
    other = tmp_path / "other.gguf"
    other.write_bytes(b"GGUF")
    started: list[Launch] = []

    def start(launch: Launch) -> Engine:
        started.append(launch)
        return FakeServer().engine()

    settings = ProviderSettings("one", "local", model=gguf, context_window=4096, options={"n_threads": 3})
    model = LocalProvider(settings, start=start)
    for name in ("", gguf, str(other), gguf):
        await parts_of(model, ask(model=name))
    assert [launch.path.name for launch in started] == ["m.gguf", "other.gguf", "m.gguf"]
    assert (started[0].n_ctx, started[0].n_threads) == (4096, 3)
    await model.aclose()


async def test_a_model_that_does_not_load_is_a_setting_to_mend(gguf):
    def start(launch: Launch) -> Engine:
        raise EngineError("cannot be loaded: it is odd")

    model = LocalProvider(ProviderSettings("one", "local", model=gguf), start=start)
    for _ in range(2):
        with pytest.raises(ConfigError, match='provider "one" cannot be loaded: it is odd'):
            await parts_of(model, ask())


async def test_a_bug_on_the_way_is_no_silence(gguf, monkeypatch):
    model = provider(gguf, FakeServer())
    monkeypatch.setattr(model, "_body", lambda engine, request: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        await parts_of(model, ask())
    monkeypatch.undo()
    assert StopPart("end") in await parts_of(model, ask())


MISSING = {
    "smollm2": "wholeturn models pull smollm2",
    "smolm2": "known: smollm2",
    "/nowhere/x.gguf": "is not there",
    "x/y.gguf": "whole path",
}


@pytest.mark.parametrize("name", MISSING)
def test_a_model_that_is_not_there(name, tmp_path, monkeypatch):
    monkeypatch.setenv("WHOLETURN_DATA_DIR", str(tmp_path))
    with pytest.raises(ConfigError, match=MISSING[name]) as caught:
        create(ProviderSettings("one", "local", model=name, source="config.toml:7"))
    assert "providers.one.model (config.toml:7)" in str(caught.value)


async def test_names_are_looked_up_in_the_data_folder(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mine.gguf").write_bytes(b"GGUF")
    settings = ProviderSettings("one", "local", model="mine")
    model = LocalProvider(settings, environ={"WHOLETURN_DATA_DIR": str(tmp_path)})
    assert model.launch() == Launch(tmp_path / "models" / "mine.gguf", 8192, model.launch().n_threads)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"n_ctx": 10}, "at least 256"),
        ({"n_threads": 0}, "at least 1"),
        ({"nctx": 4096}, 'mean "n_ctx"'),
        ({"guided_tools": "yes"}, "true or false"),
        ({"extra_body": {"response_format": {}}}, "may not set response_format"),
    ],
)
def test_options_that_cannot_be_used(options, told):
    with pytest.raises(ConfigError, match=told):
        LocalProvider(ProviderSettings("one", "local", options=options))
