"""What every HTTP kind makes of a server that fails: the same for each, over real sockets.

Each is asked once. Asking again: `test_provider_retries`. What an error's body says: `test_error_bodies`.
"""

import gzip
import zlib

import pytest
import trio

from runtime.providers.http.event_stream import SseSplitter
from runtime.values.errors import ProviderError, ProviderErrorKind
from runtime.values.model import CallPart, ModelRequest, Part, Segment, StopPart, TextPart, ThoughtPart
from runtime.values.rows import Row
from tests.contracts.plans import SECRET, WIRES, Plan, model_of
from tests.support.fakes_llm import Canned, FakeServer, fake_server

Kind = ProviderErrorKind
SECONDS = 20
"""For one request, on a machine that has much else to do."""
PROMPT = "the garden gnome is blue"
REQUEST = ModelRequest("m", (Segment((Row("system", "s"),)), Segment((Row("user", PROMPT),))))
TALK = Plan(("Hel", "lo"), thought="hm")
CALLS = Plan(calls=(("c1", "read_file", '{"path": "a.txt"}'),), stop="tool_calls")


@pytest.fixture(params=WIRES)
def kind(request) -> str:
    return str(request.param)


def good(kind: str, plan: Plan = TALK, **more) -> Canned:
    return Canned(WIRES[kind].whole(plan), **more)


def begun(kind: str, plan: Plan = TALK, ending: str = "cut") -> Canned:
    """An answer without its end."""
    return Canned(WIRES[kind].parts(plan), ending=ending)


def refused(status: int, *headers: str, body: bytes = b"{}") -> Canned:
    return Canned((body,), status=status, headers=headers, content_type="application/json")


class Asked:
    """What came of one request: its parts, and how it failed."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.error: ProviderError | None = None

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def fault(self) -> Kind | None:
        return None if self.error is None else self.error.kind


async def ask(kind: str, server: FakeServer, **options: object) -> Asked:
    asked, model = Asked(), model_of(kind, server.base_url, **options)
    try:
        with trio.fail_after(SECONDS):
            async with model.stream(REQUEST) as batches:
                async for batch in batches:
                    asked.parts += batch
    except ProviderError as error:
        asked.error = error
    await model.aclose()
    return asked


def whole(asked: Asked) -> bool:
    return (asked.text, asked.error, asked.parts[-1]) == ("Hello", None, StopPart("end"))


STATUSES = {408: True, 409: True, 429: True, 500: True, 502: True, 503: True, 504: True, 529: True}
FINAL = dict.fromkeys((301, 400, 401, 402, 403, 404, 413, 422), False)


@pytest.mark.parametrize("status", [*STATUSES, *FINAL])
async def test_whether_a_status_may_pass(kind, status):
    async with fake_server(refused(status), good(kind)) as server:
        asked = await ask(kind, server)
    assert asked.error is not None
    assert (asked.error.status, asked.error.retryable, asked.parts) == (status, status in STATUSES, [])
    assert len(server.asked) == 1


WAITS = [
    (("retry-after: 7",), b"{}", 7.0),
    (("retry-after-ms: 7000",), b"{}", 7.0),
    ((), b'{"error":{"message":"Rate limit reached. Please try again in 11.5s."}}', 11.5),
    (("retry-after: 3",), b'{"error":{"message":"Rate limit reached. Please try again in 11.5s."}}', 3.0),
    (("retry-after: soon",), b"{}", None),
]


@pytest.mark.parametrize(("headers", "body", "wait"), WAITS)
async def test_a_stated_wait(kind, headers, body, wait):
    async with fake_server(refused(429, *headers, body=body)) as server:
        asked = await ask(kind, server)
    assert asked.error is not None
    assert asked.error.retry_after == wait


async def test_a_stream_that_breaks_off_in_the_text_is_not_begun_again(kind):
    async with fake_server(begun(kind), good(kind)) as server:
        asked = await ask(kind, server)
    assert (asked.text, asked.fault) == ("Hello", Kind.STREAM_DROPPED)
    assert any(isinstance(part, ThoughtPart) for part in asked.parts)
    assert len(server.asked) == 1


async def test_a_stream_that_ends_without_its_end_is_no_answer(kind):
    async with fake_server(begun(kind, ending="end"), good(kind)) as server:
        asked = await ask(kind, server)
    assert (asked.text, asked.fault) == ("Hello", Kind.STREAM_DROPPED)


@pytest.mark.parametrize("ending", ["cut", "end"])
async def test_a_stream_that_breaks_off_before_anything(kind, ending):
    async with fake_server(Canned((), ending=ending)) as server:
        asked = await ask(kind, server)
    assert (asked.parts, asked.fault) == ([], Kind.STREAM_DROPPED)


async def test_a_connection_that_closes_without_a_word(kind):
    async with fake_server(Canned(raw=b"", ending="cut")) as server:
        asked = await ask(kind, server)
    assert (asked.parts, asked.fault) == ([], Kind.STREAM_DROPPED)


@pytest.mark.parametrize("ending", ["cut", "end"])
async def test_half_a_call_is_no_call(kind, ending):
    """Cut behind each piece of it, and in the middle of its last one."""
    pieces = WIRES[kind].parts(CALLS)
    streams = [pieces[: count + 1] for count in range(len(pieces))]
    streams.append((*pieces[:-1], pieces[-1][: len(pieces[-1]) // 2]))
    for chunks in streams:
        async with fake_server(Canned(chunks, ending=ending)) as server:
            asked = await ask(kind, server)
        assert asked.fault is Kind.STREAM_DROPPED
        assert not any(isinstance(part, CallPart) for part in asked.parts)


async def test_arguments_that_are_no_json_are_handed_on_as_they_are(kind):
    broken = '{"path": "a'
    plan = Plan(calls=(("c1", "read_file", broken),), stop="tool_calls")
    async with fake_server(good(kind, plan)) as server:
        asked = await ask(kind, server)
    assert [part.call.arguments for part in asked.parts if isinstance(part, CallPart)] == [broken]
    assert asked.parts[-1] == StopPart("tool_calls")


def spoilt(kind: str, spoil: bytes) -> Canned:
    """An answer with these bytes between its text and its end."""
    wire = WIRES[kind]
    middle = spoil if wire.base == "" else b"data: " + spoil + b"\n"
    return Canned((*wire.parts(TALK), middle + b"\n", *wire.frames(*wire.end(TALK))))


@pytest.mark.parametrize("spoil", [b"{nonsense}", b'{"half":', b"[]", b"7", b"[" * 10_000, b"\xff\xfe{"])
async def test_an_event_that_is_no_object_ends_the_answer(kind, spoil):
    async with fake_server(spoilt(kind, spoil)) as server:
        asked = await ask(kind, server)
    assert (asked.text, asked.fault) == ("Hello", Kind.MALFORMED)
    assert len(server.asked) == 1


async def test_an_object_that_says_nothing_is_passed_over(kind):
    async with fake_server(spoilt(kind, b'{"brand_new": {"thing": [1, null]}}')) as server:
        assert whole(await ask(kind, server))


async def test_an_error_in_the_stream_keeps_what_came(kind):
    wire = WIRES[kind]
    async with fake_server(Canned((*wire.parts(TALK), *wire.frames(wire.fault)))) as server:
        asked = await ask(kind, server)
    assert (asked.text, asked.fault) == ("Hello", Kind.OVERLOADED)
    assert len(server.asked) == 1


async def test_an_error_as_the_whole_stream_comes_on_entry(kind):
    wire = WIRES[kind]
    async with fake_server(Canned(wire.frames(wire.fault))) as server:
        model = model_of(kind, server.base_url)
        with pytest.raises(ProviderError) as caught, trio.fail_after(SECONDS):
            await model.stream(REQUEST).__aenter__()
        await model.aclose()
    assert (caught.value.kind, caught.value.retryable) == (Kind.OVERLOADED, True)


@pytest.mark.parametrize("answer", [Canned((), ending="hang"), Canned(raw=b"", ending="hang")])
async def test_a_first_byte_that_does_not_come(kind, answer):
    async with fake_server(answer) as server:
        asked = await ask(kind, server, idle_timeout=0.2)
    assert (asked.parts, asked.fault) == ([], Kind.TIMEOUT)


async def test_a_next_byte_that_does_not_come(kind):
    async with fake_server(begun(kind, ending="hang")) as server:
        asked = await ask(kind, server, idle_timeout=0.2)
    assert (asked.text, asked.fault) == ("Hello", Kind.TIMEOUT)


@pytest.mark.parametrize("content_type", ["text/plain", "application/octet-stream", "application/json", "x"])
async def test_the_content_type_is_not_what_counts(kind, content_type):
    async with fake_server(good(kind, content_type=content_type)) as server:
        assert whole(await ask(kind, server))


@pytest.mark.parametrize("page", [b"<!DOCTYPE html><html>login</html>", b"OK", b"\x00\x01", b"null", b'"x"'])
async def test_a_page_is_no_answer(kind, page):
    async with fake_server(Canned((page,), content_type="text/html")) as server:
        asked = await ask(kind, server)
    assert (asked.parts, asked.fault) == ([], Kind.MALFORMED)


@pytest.mark.parametrize(("name", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
async def test_an_answer_that_is_packed_although_nobody_asked(kind, name, pack):
    body = pack(b"".join(WIRES[kind].whole(TALK)))
    pieces = tuple(body[start : start + 20] for start in range(0, len(body), 20))
    async with fake_server(Canned(pieces, headers=(f"content-encoding: {name}",))) as server:
        assert whole(await ask(kind, server))
    assert server.asked[0].headers["accept-encoding"] == "identity"


async def test_an_answer_that_says_it_is_packed_and_is_not(kind):
    async with fake_server(good(kind, headers=("content-encoding: gzip",))) as server:
        asked = await ask(kind, server)
    assert (asked.parts, asked.fault) == ([], Kind.MALFORMED)


async def test_a_piece_without_an_end_is_given_up(kind, monkeypatch):
    monkeypatch.setattr(SseSplitter.__init__, "__defaults__", (100_000,))
    open_piece = WIRES[kind].parts(Plan(("x" * 300_000,)))[-1].rstrip(b"\n")
    async with fake_server(Canned((open_piece,), ending="hang")) as server:
        asked = await ask(kind, server)
    assert asked.fault is Kind.MALFORMED


async def test_a_large_piece_is_taken(kind):
    async with fake_server(good(kind, Plan(("x" * 3_000_000,)))) as server:
        assert len((await ask(kind, server)).text) == 3_000_000


async def test_a_byte_at_a_time(kind):
    body = b"".join(WIRES[kind].whole(TALK))
    pieces = tuple(body[place : place + 1] for place in range(len(body)))
    async with fake_server(Canned(pieces)) as server:
        assert whole(await ask(kind, server))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
async def test_what_a_server_quotes_of_us_is_not_told(kind, status):
    body = b'{"error":{"message":"Bearer %b wanted: %b","code":"%b"}}' % (
        SECRET.encode(),
        PROMPT.encode(),
        SECRET.encode(),
    )
    async with fake_server(refused(status, f"x-request-id: {SECRET}", body=body)) as server:
        asked = await ask(kind, server)
    assert SECRET in server.asked[0].headers[WIRES[kind].key_header]
    assert asked.error is not None
    told = f"{asked.error} {asked.error!r} {asked.error.data}"
    assert SECRET not in told
    assert "gnome" not in told
