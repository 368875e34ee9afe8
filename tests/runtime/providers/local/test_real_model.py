"""The provider with the real model: long talks, a window smaller than stated, cancel, guided tools."""

import json
import os
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import trio

from runtime.history.rows.overflow import is_context_overflow
from runtime.ports import Provider
from runtime.providers.local.engine import Engine, Launch, load
from runtime.providers.local.provider import LocalProvider
from runtime.providers.settings import ProviderSettings
from runtime.values.errors import ProviderError
from runtime.values.model import CallPart, ModelRequest, Part, Segment, StopPart, TextPart, UsagePart
from runtime.values.profiles import Profile
from runtime.values.rows import Row, ToolCall, ToolSpec
from tests.runtime.providers.local.talks import TURN_SECONDS, new_talk, note, take_turns
from tests.support.fakes import script

WINDOW = 2048
TURNS = int(os.environ.get("LOCAL_TURNS", "12"))
LIST_DIR = ToolSpec(
    "list_dir",
    "List a folder.",
    '{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}',
)


@pytest.fixture(scope="module")
def engine(smollm2: Path) -> Engine:
    """The model, loaded once."""
    return load(Launch(smollm2, WINDOW, 1))


@pytest.fixture
async def model(engine: Engine, smollm2: Path) -> AsyncIterator[LocalProvider]:
    """A provider with it."""
    options = {"n_ctx": WINDOW, "extra_body": {"temperature": 0, "repeat_penalty": 1.1}}
    settings = ProviderSettings("one", "local", model=str(smollm2), options=options)
    provider = LocalProvider(settings, start=lambda _: engine)
    yield provider
    await provider.aclose()


async def parts_of(model: LocalProvider, request: ModelRequest) -> list[Part]:
    got: list[Part] = []
    with trio.fail_after(TURN_SECONDS):
        async with model.stream(request) as batches:
            async for batch in batches:
                got += batch
    return got


def request(*rows: Row, tools: tuple[ToolSpec, ...] = (), limit: int = 24) -> ModelRequest:
    return ModelRequest(
        "", (Segment((Row("system", "Answer in a few words."),)), Segment(rows)), tools, limit
    )


async def test_a_long_conversation_in_a_small_window(model):
    # Where the turns are few, a budget below the window takes care that they do not fit in it either.
    budget, words = (0, 60) if TURNS >= 40 else (400, 30)
    profile = Profile(max_context_tokens=budget, max_history_messages=500, trim_slack_ratio=0.2)
    talk, client = await new_talk(lambda: model, window=WINDOW, limit=12, profile=profile)
    ends = await take_turns(talk, client, [note(number, words) for number in range(TURNS)])
    assert set(ends) <= {"end_turn", "max_tokens"}
    trims = client.trims()
    assert trims
    assert all(trim.dropped_messages > 0 and trim.kept_turns > 0 for trim in trims)


async def test_a_window_that_is_smaller_than_stated(model):
    told = script({"text": "The first one."}, {"text": "The second one."})
    models: Iterator[Provider] = iter([told, told, model, model])
    profile = Profile(max_context_tokens=0, max_history_messages=500)
    talk, client = await new_talk(lambda: next(models), window=8192, limit=12, profile=profile)
    await take_turns(talk, client, [note(1, 1600), note(2, 450)])
    assert client.trims() == []
    (end,) = await take_turns(talk, client, [note(9, 20)])
    assert end in ("end_turn", "max_tokens")
    assert talk.conversation.keeper.route.learned_window == WINDOW
    assert client.trims()


async def test_the_overflow_is_the_servers_own(model):
    with pytest.raises(ProviderError) as caught:
        await parts_of(model, request(Row("user", note(1, 2500))))
    assert is_context_overflow(caught.value)
    assert str(WINDOW) in caught.value.detail


async def test_usage_is_read_back_and_the_prefix_is_cached(model):
    first = request(Row("user", note(2, 40)))
    read = [part for part in await parts_of(model, first) if isinstance(part, UsagePart)]
    again = [part for part in await parts_of(model, first) if isinstance(part, UsagePart)]
    assert read[0].input_tokens == again[0].input_tokens > 40
    assert 0 < read[0].output_tokens <= 24
    assert again[0].cached_tokens >= read[0].input_tokens - 1


async def test_cancel_in_the_middle_of_an_answer_and_of_a_prompt(model):
    for prompt, pieces in (("Tell a long story.", 3), (note(3, 800), 0)):
        started = trio.Event()
        with trio.fail_after(TURN_SECONDS):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_read_on, model, request(Row("user", prompt), limit=600), pieces, started)
                await started.wait()
                cancelled = trio.current_time()
                nursery.cancel_scope.cancel()
        assert trio.current_time() - cancelled < 0.5
        assert isinstance((await parts_of(model, request(Row("user", "Hello."), limit=4)))[-1], StopPart)


async def _read_on(model: LocalProvider, asked: ModelRequest, pieces: int, started: trio.Event) -> None:
    if not pieces:
        started.set()
    async with model.stream(asked) as batches:
        async for batch in batches:
            pieces -= sum(isinstance(part, TextPart) for part in batch)
            if pieces <= 0:
                started.set()


async def test_tools_are_called_by_a_model_that_knows_none(model):
    got = await parts_of(model, request(Row("user", "List the folder src."), tools=(LIST_DIR,), limit=80))
    calls = [part.call for part in got if isinstance(part, CallPart)]
    text = "".join(part.text for part in got if isinstance(part, TextPart))
    assert calls or text  # whatever it chose, it is one or the other, and whole
    for call in calls:
        assert call.name == "list_dir"
        assert list(json.loads(call.arguments)) == ["path"]
        assert got[-1] == StopPart("tool_calls")


async def test_a_result_is_answered_with_text(model):
    called = Row("assistant", "", (ToolCall("a", "list_dir", '{"path":"src"}'),))
    rows = (Row("user", "What is in src?"), called, Row("tool", "main.py\nutil.py", tool_call_id="a"))
    got = await parts_of(model, request(*rows))
    assert "".join(part.text for part in got if isinstance(part, TextPart)).strip()
    assert not any(isinstance(part, CallPart) for part in got)


async def test_nobody_else_can_talk_to_it(model, engine):
    await parts_of(model, request(Row("user", "Hello."), limit=1))
    address = engine._server.listening_address
    assert address.startswith("unix://")
    with socket.socket(socket.AF_UNIX) as connection, pytest.raises(FileNotFoundError):
        connection.connect(address.removeprefix("unix://"))
