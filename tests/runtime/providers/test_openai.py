"""The OpenAI provider over real sockets and over a fake transport: what it sends, takes, and gives up."""

import logging

import httpx2
import pytest
import trio
from trio.testing import MockClock

from runtime.providers.openai_chat.provider import OpenAIProvider
from runtime.providers.settings import ProviderSettings
from runtime.values.errors import AuthRequired, ProviderError, ProviderErrorKind
from runtime.values.model import ModelRequest, Part, Segment, StopPart, TextPart, UsagePart
from runtime.values.rows import Row
from tests.support.fakes_llm import HELLO, Canned, fake_server, sse, text_event

Kind = ProviderErrorKind
REQUEST = ModelRequest("some-model", (Segment((Row("system", "Be brief."),)), Segment((Row("user", "hi"),))))
SECRET = "sk-very-secret"


def provider(base_url: str, **more) -> OpenAIProvider:
    settings = {key: more.pop(key) for key in ("api_key_env", "headers", "options") if key in more}
    more.setdefault("environ", {"KEY": SECRET})
    return OpenAIProvider(ProviderSettings("mine", "openai", base_url, **settings), **more)


def over(handler, **more) -> OpenAIProvider:
    return provider("http://host.test/v1", transport=httpx2.MockTransport(handler), **more)


def sockets_have_time(clock: MockClock) -> None:
    """Waits are jumped over, but not while bytes are on their way between two sockets."""
    clock.autojump_threshold = 0.05


async def collect(model: OpenAIProvider) -> list[Part]:
    parts: list[Part] = []
    with trio.fail_after(5):
        async with model.stream(REQUEST) as batches:
            async for batch in batches:
                assert batch
                parts += batch
    return parts


async def failure_of(model: OpenAIProvider) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await collect(model)
    await model.aclose()
    return caught.value


async def test_request_and_connection():
    async with fake_server(HELLO) as server:
        model = provider(server.base_url, api_key_env="KEY", headers={"X-Title": "t"})
        for _ in range(3):
            parts = await collect(model)
            assert "".join(p.text for p in parts if isinstance(p, TextPart)) == "Hello"
            assert parts[-1] == StopPart("end")
        await model.aclose()
    assert server.connections == 1
    asked = server.asked[0]
    assert asked.line == "POST /v1/chat/completions HTTP/1.1"
    assert asked.headers["authorization"] == f"Bearer {SECRET}"
    assert asked.headers["x-title"] == "t"
    assert asked.headers["accept-encoding"] == "identity"
    assert asked.body["model"] == "some-model"
    assert asked.body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
    ]


async def test_no_key_variable_sends_no_authorization():
    async with fake_server(HELLO) as server:
        model = provider(server.base_url)
        await collect(model)
        await model.aclose()
    assert "authorization" not in server.asked[0].headers


@pytest.mark.parametrize("value", ["", "  ", "sk-ключ", "a\nb"])
async def test_a_key_that_cannot_be_used(value):
    model = provider("http://127.0.0.1:9/v1", api_key_env="KEY", environ={"KEY": value})
    with pytest.raises(AuthRequired, match="variable KEY") as caught:
        await collect(model)
    assert not value.strip() or value not in str(caught.value)


async def test_many_chunks_of_one_write_are_one_batch():
    events = sse(*(text_event(f"{i} ") for i in range(500)), text_event("", "stop"))
    async with fake_server(Canned(events, together=True)) as server:
        model = provider(server.base_url)
        async with model.stream(REQUEST) as batches:
            got = [batch async for batch in batches]
        await model.aclose()
    assert len(got) <= 5
    assert "".join(p.text for b in got for p in b if isinstance(p, TextPart)) == "".join(
        f"{i} " for i in range(500)
    )


@pytest.mark.parametrize("ending", ["end", "hang"])
async def test_the_clients_own_transport_serves_as_well(ending, monkeypatch):
    """It is taken when the environment names a proxy."""
    async with fake_server(HELLO, Canned(sse(text_event("x"), done=False), ending=ending)) as server:
        monkeypatch.setenv("HTTP_PROXY", server.base_url.removesuffix("/v1"))
        monkeypatch.setenv("NO_PROXY", "")
        model = provider("http://model.test/v1")
        assert (await collect(model))[-1] == StopPart("end")
        with trio.fail_after(5):
            async with model.stream(REQUEST) as batches:
                assert await anext(batches) == [TextPart("x")]
        await model.aclose()
    assert server.asked[0].line == "POST http://model.test/v1/chat/completions HTTP/1.1"


async def test_text_comes_before_the_answer_ends():
    async with fake_server(Canned(sse(text_event("now"), done=False), ending="hang")) as server:
        model = provider(server.base_url)
        with trio.fail_after(5):
            async with model.stream(REQUEST) as batches:
                assert await anext(batches) == [TextPart("now")]
            await server.client_left.wait()
        await model.aclose()


async def test_cancelling_closes_the_connection_at_once():
    async with fake_server(Canned(sse(text_event("x"), done=False), ending="hang"), HELLO) as server:
        model = provider(server.base_url)
        with trio.move_on_after(0.1) as scope:
            async with model.stream(REQUEST) as batches:
                async for _ in batches:
                    pass
        assert scope.cancelled_caught
        with trio.fail_after(5):
            await server.client_left.wait()
        assert (await collect(model))[-1] == StopPart("end")
        await model.aclose()
    assert server.connections == 2


async def collect_and_raise(model: OpenAIProvider) -> None:
    async with model.stream(REQUEST) as batches:
        async for _ in batches:
            raise KeyError("mine")


async def test_an_error_of_the_caller_passes_unchanged():
    async with fake_server(Canned(sse(text_event("x"), done=False), ending="hang")) as server:
        model = provider(server.base_url)
        with pytest.raises(KeyError, match="mine"):
            await collect_and_raise(model)
        await model.aclose()


ENDINGS = {
    "cut before the stop": (Canned(sse(text_event("par"), done=False), ending="cut"), Kind.STREAM_DROPPED),
    "ended before the stop": (Canned(sse(text_event("par"), done=False)), Kind.STREAM_DROPPED),
    "not HTTP at all": (Canned(raw=b"SSH-2.0-x\r\n\r\n", ending="cut"), Kind.STREAM_DROPPED),
    "a page": (Canned((b"<html>hi</html>",), content_type="text/html"), Kind.MALFORMED),
}


@pytest.mark.parametrize("name", ENDINGS)
async def test_endings(name, autojump_clock):
    answer, kind = ENDINGS[name]
    sockets_have_time(autojump_clock)
    async with fake_server(answer) as server:
        error = await failure_of(provider(server.base_url))
    assert error.kind is kind
    assert server.base_url.split("/")[2] in str(error)


async def test_complete_answers_whose_connection_breaks_are_complete():
    complete = Canned(sse(text_event("all", "stop"), done=False), ending="cut")
    async with fake_server(complete) as server:
        model = provider(server.base_url)
        assert await collect(model) == [TextPart("all"), StopPart("end")]
        await model.aclose()


async def test_a_complete_answer_that_does_not_end(autojump_clock):
    class Endless(httpx2.AsyncByteStream):
        async def __aiter__(self):
            yield b"".join(sse(text_event("all", "stop"), done=False))
            await trio.sleep_forever()

    model = over(lambda _: httpx2.Response(200, stream=Endless()))
    assert await collect_jumping(model) == [TextPart("all"), StopPart("end")]
    assert trio.current_time() < 30


async def collect_jumping(model: OpenAIProvider) -> list[Part]:
    async with model.stream(REQUEST) as batches:
        return [part async for batch in batches for part in batch]


@pytest.mark.parametrize("length", ["chunked", "stated", "until close"])
async def test_answers_in_one_json_body(length):
    body = b'{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}'
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
    stated = head + b"content-length: %d\r\n\r\n%b" % (len(body), body)
    answers = {
        "chunked": Canned((body[:20], body[20:]), content_type="application/json"),
        "stated": Canned(raw=stated),
        "until close": Canned(raw=head + b"\r\n" + body, ending="cut"),
    }
    async with fake_server(answers[length]) as server:
        model = provider(server.base_url)
        assert await collect(model) == [TextPart("x"), UsagePart(1, 0), StopPart("end")]
        await model.aclose()


async def test_nothing_listens(autojump_clock):
    sockets_have_time(autojump_clock)
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    await listeners[0].aclose()
    error = await failure_of(provider(f"http://127.0.0.1:{port}/v1"))
    assert error.kind is Kind.UNREACHABLE
    assert error.retryable
    assert f"127.0.0.1:{port}" in str(error)
    assert "base_url" in str(error)


OVERFLOW = b'{"error":{"message":"maximum context length is 8 tokens","code":"context_length_exceeded"}}'
STATUSES = [
    (401, b"", Kind.AUTH, False),
    (403, b"", Kind.AUTH, False),
    (404, b'{"error":{"code":"model_not_found"}}', Kind.NOT_FOUND, False),
    (408, b"", Kind.TIMEOUT, True),
    (409, b"", Kind.SERVER, True),
    (429, b"", Kind.RATE_LIMIT, True),
    (429, b'{"error":{"code":"insufficient_quota"}}', Kind.QUOTA, False),
    (400, OVERFLOW, Kind.BAD_REQUEST, False),
    (413, b"too big", Kind.BAD_REQUEST, False),
    (422, b"[]", Kind.BAD_REQUEST, False),
    (500, b"\xff\xfe", Kind.SERVER, True),
    (503, b"", Kind.OVERLOADED, True),
    (529, b"", Kind.OVERLOADED, True),
    (302, b"", Kind.BAD_REQUEST, False),
]


@pytest.mark.parametrize(("status", "body", "kind", "retryable"), STATUSES)
async def test_statuses(status, body, kind, retryable):
    error = await failure_of(over(lambda _: httpx2.Response(status, content=body), api_key_env="KEY"))
    assert (error.kind, error.retryable, error.status) == (kind, retryable, status)
    assert SECRET not in str(error) + error.detail + error.code
    assert error.data == {"kind": kind.value, "retryable": retryable}


async def test_the_detail_is_kept_for_overflow_detection_and_not_shown():
    error = await failure_of(over(lambda _: httpx2.Response(400, content=OVERFLOW)))
    assert error.code == "context_length_exceeded"
    assert error.detail == "maximum context length is 8 tokens"
    assert "maximum context" not in str(error)


async def test_a_stated_wait_goes_to_the_caller():
    error = await failure_of(over(lambda _: httpx2.Response(429, headers={"retry-after": "3600"})))
    assert error.retry_after == 3600
    assert "3600 s" in str(error)


async def test_an_idle_stream_times_out(autojump_clock):
    sockets_have_time(autojump_clock)
    async with fake_server(Canned(sse(text_event("x"), done=False), ending="hang")) as server:
        error = await failure_of(provider(server.base_url, options={"idle_timeout": 2}))
    assert error.kind is Kind.TIMEOUT
    assert "middle of its answer" in str(error)


async def test_errors_that_say_what_to_look_at(autojump_clock):
    def handler(_):
        raise httpx2.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed")

    error = await failure_of(over(handler))
    assert error.kind is Kind.UNREACHABLE
    assert "TLS certificate" in str(error)


async def test_nothing_secret_is_logged(caplog):
    caplog.set_level(logging.DEBUG)
    async with fake_server(HELLO, Canned(status=400, chunks=(b"hi",))) as server:
        model = provider(server.base_url, api_key_env="KEY")
        await collect(model)
        error = await failure_of(model)
    assert SECRET not in caplog.text + repr(error)
    assert "Be brief" not in caplog.text
    assert logging.getLogger("httpcore2").level == logging.WARNING
