"""Ollama's own API: what is sent, how its refusals are told, and that nothing is cut without a word."""

import json
import socket

import httpx2
import pytest
import trio

from runtime.history.rows.overflow import is_context_overflow
from runtime.providers import catalog
from runtime.providers.ollama import provider
from runtime.providers.ollama.provider import OllamaProvider
from runtime.providers.ollama.request import BodyWriter, encoded
from runtime.providers.settings import ProviderSettings
from runtime.values.errors import ConfigError, ProviderError, ProviderErrorKind
from runtime.values.events import Noticed
from runtime.values.model import ModelRequest, Segment, TextPart
from runtime.values.profiles import Profile
from runtime.values.rows import Image, Row, ToolCall, ToolSpec
from tests.support.fakes import EchoTool, ask, make_session
from tests.support.fakes_llm import Canned, fake_server

Kind = ProviderErrorKind
TOOL = ToolSpec("read_file", "Read.", '{"type":"object"}')
HI = Segment((Row("user", "hi"),))


def settings(base_url: str = "", **more) -> ProviderSettings:
    more.setdefault("model", "qwen3:8b")
    return ProviderSettings("mine", "ollama", base_url, source="config.toml, line 7", **more)


def body(*segments: Segment, model: str = "qwen3:8b", tools=(), limit: int | None = None, **more):
    writer = BodyWriter(provider.shape(settings(**more)))
    return json.loads(writer.body(ModelRequest(model, segments or (HI,), tools, limit)))


def messages(*rows: Row):
    return body(Segment(rows))["messages"]


def test_the_smallest_body():
    assert body() == {
        "model": "qwen3:8b",
        "stream": True,
        "truncate": False,
        "shift": False,
        "messages": [{"role": "user", "content": "hi"}],
    }


def test_the_window_goes_along_and_the_output_limit():
    assert body(context_window=16384)["options"] == {"num_ctx": 16384}
    assert body(context_window=16384, limit=500)["options"] == {"num_ctx": 16384, "num_predict": 500}
    extra = {"extra_body": {"options": {"temperature": 0.2}, "format": "json"}}
    full = body(context_window=16384, options=extra)
    assert full["options"] == {"temperature": 0.2, "num_ctx": 16384}
    assert full["format"] == "json"


def test_a_window_is_not_lent_to_another_model():
    assert "options" not in body(model="other", context_window=16384)
    shape = provider.shape(settings(model="", context_window=16384))
    assert shape.window_of("any") == 16384, "a section that names none speaks of all"


def test_tools_thinking_and_keeping_alive():
    sent = body(tools=(TOOL,), options={"think": "low", "keep_alive": "30m"})
    assert (sent["think"], sent["keep_alive"]) == ("low", "30m")
    function = {"name": "read_file", "description": "Read.", "parameters": {"type": "object"}}
    assert sent["tools"] == [{"type": "function", "function": function}]
    assert body(options={"think": False, "keep_alive": -1})["keep_alive"] == -1


THOUGHT = '[{"type":"message.thinking","thinking":"Which?"}]'


def test_a_tool_round_goes_back_whole():
    calls = (ToolCall("c1", "read_file", '{"path": "a"}'), ToolCall("c2", "list_dir", "oops"))
    sent = messages(
        Row("system", "  "),
        Row("system", "Be brief."),
        Row("user", "look"),
        Row("assistant", "", calls, reasoning=THOUGHT),
        Row("tool", "", tool_call_id="c1"),
        Row("tool", "b", tool_call_id="c2"),
        Row("assistant", "done"),
    )
    assert [message["role"] for message in sent] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    asked = sent[2]
    assert (asked["content"], asked["thinking"]) == ("", "Which?")
    assert [one["function"]["arguments"] for one in asked["tool_calls"]] == [
        {"path": "a"},
        {"invalid_arguments": "oops"},
    ]
    assert sent[3] == {"role": "tool", "content": "(empty)", "tool_name": "read_file", "tool_call_id": "c1"}
    assert sent[4]["tool_name"] == "list_dir"


@pytest.mark.parametrize(
    "kept", ['{"type":"reasoning","id":"rs"}', '{"type":"thinking","thinking":"t"}', "7"]
)
def test_reasoning_of_another_api_is_not_sent(kept):
    row = Row("assistant", "x", (ToolCall("c", "f", "{}"),), reasoning=f"[{kept}]")
    (sent,) = messages(row)
    assert set(sent) == {"role", "content", "tool_calls"}


def test_a_result_in_a_segment_of_its_own_has_its_id_at_least():
    (sent,) = messages(Row("tool", "x", tool_call_id="c9"))
    assert sent == {"role": "tool", "content": "x", "tool_call_id": "c9"}


def test_pictures_are_base64_and_others_are_told_of():
    images = (
        Image("image/png", "QUJD"),
        Image("image/png", uri="data:image/png;base64,REVG"),
        Image("image/png", uri="https://h.test/a.png"),
    )
    (sent,) = messages(Row("user", "see", images=images))
    assert sent["images"] == ["QUJD", "REVG"]
    assert sent["content"] == "see\n\n[image that could not be sent: https://h.test/a.png]"
    (sent,) = messages(Row("user", "", images=images[:1]))
    assert sent == {"role": "user", "content": "", "images": ["QUJD"]}


def test_what_was_sent_is_not_encoded_again():
    segment = Segment((Row("user", "hi"), Row("assistant", "ho")))
    assert encoded(segment) is encoded(segment)
    writer = BodyWriter(provider.shape(settings(context_window=4096)))
    first = writer.body(ModelRequest("qwen3:8b", (segment,), (), 100))
    second = writer.body(ModelRequest("qwen3:8b", (segment, HI), (), 90))
    assert second.startswith(first[: first.index(b'],"options"')])


@pytest.mark.parametrize("text", ["\ud800", "a\x00b", "\u2028"])
def test_any_text_can_be_sent(text):
    (sent,) = messages(Row("user", f"x{text}"))
    assert sent["content"].startswith("x")


ADDRESSES = {
    "": "http://127.0.0.1:11434/api/chat",
    "http://h.test:1": "http://h.test:1/api/chat",
    "http://h.test/v1": "http://h.test/api/chat",
    "http://h.test/v1/": "http://h.test/api/chat",
    "https://ollama.com/api": "https://ollama.com/api/chat",
    "https://h.test/x/api/chat": "https://h.test/x/api/chat",
}


@pytest.mark.parametrize("base_url", ADDRESSES)
def test_addresses(base_url):
    assert provider.endpoint_of(settings(base_url)).url == ADDRESSES[base_url]


def test_a_model_may_take_long_to_load():
    assert provider.endpoint_of(settings()).idle_seconds == 300
    assert provider.endpoint_of(settings(options={"idle_timeout": 5})).idle_seconds == 5
    assert provider.endpoint_of(settings()).headers["Accept"] == "application/x-ndjson, application/json"


WRONG = [
    ({"think": 1}, "level"),
    ({"think": " "}, "level"),
    ({"keep_alive": True}, "10m"),
    ({"keep_alive": ""}, "10m"),
    ({"extra_body": {"truncate": True}}, "may not set truncate"),
    ({"extra_body": {"options": 7}}, "no table"),
    ({"extra_body": {"options": {"num_ctx": 9}}}, "num_ctx; context_window"),
    ({"extra_body": {"options": {"num_predict": 9}}}, "num_predict; max_output_tokens"),
    ({"kep_alive": "1m"}, 'mean "keep_alive"'),
]


@pytest.mark.parametrize(("options", "says"), WRONG)
def test_wrong_options_are_named(options, says):
    with pytest.raises(ConfigError, match=says) as caught:
        catalog.create(settings(options=options))
    assert "providers.mine." in str(caught.value)
    assert "config.toml, line 7" in str(caught.value)


async def refusal(status: int, text: str) -> ProviderError:
    transport = httpx2.MockTransport(lambda _: httpx2.Response(status, content=text.encode()))
    model = OllamaProvider(settings(), transport=transport)
    return await failure_of(model)


async def failure_of(model: OllamaProvider) -> ProviderError:
    with pytest.raises(ProviderError) as caught, trio.fail_after(5):
        async with model.stream(ModelRequest("qwen3:8b", (HI,))):
            pass
    await model.aclose()
    return caught.value


async def test_a_model_that_is_not_there_can_be_pulled():
    error = await refusal(404, '{"error":"model \'qwen3:8b\' not found"}')
    assert error.kind is Kind.NOT_FOUND
    assert "`ollama pull qwen3:8b`" in str(error)


async def test_an_overflow_is_one():
    error = await refusal(400, '{"error":"the input length exceeds the context length"}')
    assert is_context_overflow(error)


async def test_nobody_there():
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    error = await failure_of(OllamaProvider(settings(address)))
    assert error.kind is Kind.UNREACHABLE
    assert "Is Ollama running?" in str(error)


def lines(*values: object) -> tuple[bytes, ...]:
    return tuple(json.dumps(value).encode() + b"\n" for value in values)


def said(text: str, **more: object) -> dict[str, object]:
    return {"message": {"role": "assistant", "content": text}, "done": False, **more}


def done(tokens: int = 10, **more: object) -> dict[str, object]:
    return said(
        "", **{"done": True, "done_reason": "stop", "prompt_eval_count": tokens, "eval_count": 1, **more}
    )


def canned(*values: object) -> Canned:
    return Canned(lines(*values), content_type="application/x-ndjson")


async def test_a_model_that_was_only_loaded_is_asked_again(autojump_clock):
    autojump_clock.autojump_threshold = 0.01
    async with fake_server(canned(done(done_reason="load")), canned(said("Hello"), done())) as server:
        model = OllamaProvider(settings(server.base_url))
        session, client, _ = await make_session(model)
        assert await ask(session, "hi") == "end_turn"
        await model.aclose()
    assert client.text() == "Hello"
    assert [asked.line for asked in server.asked] == ["POST /api/chat HTTP/1.1"] * 2


async def test_text_comes_before_the_answer_ends():
    async with fake_server(Canned(lines(said("now")), ending="hang")) as server:
        model = OllamaProvider(settings(server.base_url))
        with trio.fail_after(5):
            async with model.stream(ModelRequest("m", (HI,))) as batches:
                assert await anext(batches) == [TextPart("now")]
            await server.client_left.wait()
        await model.aclose()


async def test_a_prompt_that_was_cut_is_told_of():
    """An older server cuts all the same: it is seen in what it counted."""
    async with fake_server(canned(said("ok"), done(4096))) as server:
        model = OllamaProvider(settings(server.base_url))
        session, client, _ = await make_session(model, window=None, profile=Profile(max_context_tokens=32000))
        assert await ask(session, "x" * 48_000) == "end_turn"
        await model.aclose()
    told = [event for event in client.events if isinstance(event, Noticed)]
    assert [event.title for event in told] == ["The provider seems to have cut the prompt"]
    assert "counted 4096" in told[0].description


async def test_a_conversation_with_tools():
    tool_call = {"function": {"name": "echo", "arguments": {"text": "ping"}}}
    asks = {"message": {"role": "assistant", "content": "", "thinking": "Hm.", "tool_calls": [tool_call] * 2}}
    async with fake_server(
        canned(asks, done()), canned(said("pong"), done()), canned(said("x"), done())
    ) as server:
        model = OllamaProvider(settings(server.base_url))
        tool = EchoTool()
        session, client, _ = await make_session(model, tools=[tool])
        assert await ask(session, "one") == "end_turn"
        assert await ask(session, "two") == "end_turn"
        await model.aclose()
    assert tool.ran == ["ping", "ping"]
    assert client.text() == "pongx"
    second = server.asked[1].body["messages"]
    assert isinstance(second, list)
    asked, *results = second[2:]
    ids = [one["id"] for one in asked["tool_calls"]]
    assert len(set(ids)) == 2
    assert [result["tool_call_id"] for result in results] == ids
    assert {result["tool_name"] for result in results} == {"echo"}
    assert asked["thinking"] == "Hm."
    assert "thinking" not in json.dumps(server.asked[2].body["messages"]), "only while its turn runs"
