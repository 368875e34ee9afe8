"""The event feed over real sockets: both transports, replay, filters, disconnects, and who does not read."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
import trio
from starlette.applications import Starlette

from acp_server.gateway.clients import event_streams
from acp_server.gateway.feed.feed import Feed
from runtime.values.events import AgentText, HistoryTrimmed, Noticed
from tests.acp_server.gateway.serving import PATIENCE, UPGRADE, Raw, serving, texts

TRIM = HistoryTrimmed(4, 2, 3, "history turn limit exceeded", "count", "t-1")
EVENTS, SOCKET = "/api/events", "/api/events/ws"
TEXT, CLOSE = 1, 8


@asynccontextmanager
async def serve(feed: Feed) -> AsyncIterator[int]:
    """The feed's routes on a port."""
    app = Starlette(routes=event_streams.routes(SimpleNamespace(feed=feed)))  # type: ignore[arg-type]
    async with serving(app) as port:
        yield port


def tell(feed: Feed, count: int, session_id: str = "s", size: int = 0) -> None:
    for number in range(count):
        feed.publish(session_id, AgentText("m", f"{number}{'x' * size}"))


async def readers(feed: Feed, count: int) -> None:
    """Until so many read: they register behind the head of the answer."""
    with trio.fail_after(PATIENCE):
        while len(feed.places) != count:  # noqa: ASYNC110 - there is no event for it
            await trio.sleep(0.005)


async def opened(port: int, feed: Feed, path: str = EVENTS, *headers: str, size: int = 0) -> Raw:
    """A stream that is being served."""
    before = len(feed.places)
    raw = await Raw.open(port, path, *headers, size=size)
    head = await raw.head()
    assert head.startswith("HTTP/1.1 101 " if UPGRADE[0] in headers else "HTTP/1.1 200 "), head
    await readers(feed, before + 1)
    return raw


async def test_a_stream_gives_events_with_their_ids() -> None:
    feed = Feed()
    async with serve(feed) as port:
        raw = await Raw.open(port, EVENTS)
        head = (await raw.head()).lower()
        assert "content-type: text/event-stream; charset=utf-8" in head
        assert "cache-control: no-store" in head
        assert "content-length" not in head
        assert b"retry: 2000\n\n" in await raw.until(b"\n\n")
        feed.publish("s", TRIM, turn_id="t")
        event_id, frame = await raw.frame()
        assert frame["event_id"] == event_id
        assert (frame["type"], frame["dropped_messages"], frame["turn_id"]) == ("history_trimmed", 4, "t")


async def test_all_that_is_pending_comes_in_one_chunk() -> None:
    feed = Feed()
    async with serve(feed) as port:
        raw = await opened(port, feed)
        await raw.until(b"\n\n\r\n")
        tell(feed, 20)
        size = int(await raw.until(b"\r\n"), 16)
        chunk = await raw.exactly(size)
        assert chunk.count(b"data: ") == 20


@pytest.mark.parametrize("way", ["header", "query"])
async def test_a_client_comes_back_with_the_last_id(way: str) -> None:
    feed = Feed()
    tell(feed, 5)
    last = feed.id_of(3)
    path = EVENTS if way == "header" else f"{EVENTS}?last_event_id={last}"
    headers = [f"Last-Event-ID: {last}"] if way == "header" else []
    async with serve(feed) as port:
        raw = await opened(port, feed, path, *headers)
        assert texts([(await raw.frame())[1] for _ in range(2)]) == ["3", "4"]


async def test_the_header_counts_more_than_an_old_query() -> None:
    feed = Feed()
    tell(feed, 5)
    async with serve(feed) as port:
        path = f"{EVENTS}?last_event_id={feed.id_of(1)}"
        raw = await opened(port, feed, path, f"Last-Event-ID: {feed.id_of(4)}")
        assert (await raw.frame())[1]["text"] == "4"


async def test_an_id_older_than_the_buffer_is_answered_with_what_was_lost() -> None:
    feed = Feed(max_events=2)
    tell(feed, 5)
    async with serve(feed) as port:
        raw = await opened(port, feed, f"{EVENTS}?last_event_id={feed.id_of(1)}")
        frames = [(await raw.frame())[1] for _ in range(3)]
        assert texts(frames) == ["events_lost", "3", "4"]
        assert frames[0]["lost"] == 2


@pytest.mark.parametrize("path", [EVENTS, SOCKET])
async def test_filters(path: str) -> None:
    feed = Feed()
    tell(feed, 2, "a")
    feed.publish("b", Noticed("info", "x"))
    feed.publish("b", TRIM)
    feed.publish("c", TRIM)
    query = f"?last_event_id={feed.id_of(0)}&session_id=b,c&types=noticed&types=history_trimmed&session_id=d"
    async with serve(feed) as port:
        headers = UPGRADE if path == SOCKET else ()
        raw = await opened(port, feed, path + query, *headers)
        if path == SOCKET:
            frames = [json.loads((await raw.message())[1]) for _ in range(3)]
        else:
            frames = [(await raw.frame())[1] for _ in range(3)]
        assert texts(frames) == ["noticed", "history_trimmed", "history_trimmed"]


async def test_an_unknown_type_is_refused_on_both() -> None:
    feed = Feed()
    async with serve(feed) as port:
        raw = await Raw.open(port, f"{EVENTS}?types=history_trimed")
        assert "400" in (await raw.head()).splitlines()[0]
        raw = await Raw.open(port, f"{SOCKET}?types=history_trimed", *UPGRADE)
        await raw.head()
        opcode, payload = await raw.message()
        assert (opcode, int.from_bytes(payload[:2], "big")) == (CLOSE, 1008)
        assert b"types: one of them is none of " in payload
        assert b"history_trimed" not in payload
        assert len(feed.places) == 0


async def test_a_head_request_ends() -> None:
    async with serve(Feed()) as port:
        raw = await Raw.open(port, EVENTS, "Connection: close", method="HEAD")
        assert (await raw.rest()).startswith(b"HTTP/1.1 200 ")


async def test_a_socket_gives_one_frame_a_message_and_takes_its_subprotocol() -> None:
    feed = Feed()
    async with serve(feed) as port:
        raw = await Raw.open(port, SOCKET, *UPGRADE, "Sec-WebSocket-Protocol: bearer.secret, events")
        head = (await raw.head()).lower()
        assert "sec-websocket-protocol: events\r\n" in head
        await readers(feed, 1)
        tell(feed, 2)
        feed.publish("s", TRIM)
        frames = [json.loads((await raw.message())[1]) for _ in range(3)]
        assert texts(frames) == ["0", "1", "history_trimmed"]
        assert frames[0]["event_id"] == feed.id_of(1)


async def test_a_socket_may_want_all_that_is_there_in_one_message() -> None:
    feed = Feed()
    tell(feed, 5)
    async with serve(feed) as port:
        raw = await opened(port, feed, f"{SOCKET}?batch=true&last_event_id={feed.id_of(0)}", *UPGRADE)
        opcode, payload = await raw.message()
        assert (opcode, texts(json.loads(payload))) == (TEXT, ["0", "1", "2", "3", "4"])


@pytest.mark.parametrize("path", [EVENTS, SOCKET])
async def test_a_client_that_goes_away_is_forgotten(path: str) -> None:
    feed = Feed()
    async with serve(feed) as port:
        raw = await opened(port, feed, path, *(UPGRADE if path == SOCKET else ()))
        other = await opened(port, feed)
        await raw.stream.aclose()
        await readers(feed, 1)
        tell(feed, 1)
        assert (await other.frame())[1]["text"] == "0"


@pytest.mark.parametrize("path", [EVENTS, SOCKET])
async def test_a_client_that_does_not_read_is_cut_alone_and_may_come_back(path: str) -> None:
    feed = Feed(max_events=256)
    async with serve(feed) as port:
        headers = UPGRADE if path == SOCKET else ()
        slow = await opened(port, feed, path, *headers, size=2048)
        fast = await opened(port, feed)
        for number in range(400):
            tell(feed, 10, size=4000)
            for _ in range(10):
                frame = (await fast.frame())[1]
                assert frame["type"] == "agent_text", number
        await readers(feed, 1)
        with pytest.raises((EOFError, trio.BrokenResourceError)):
            await slow.until(b"no such bytes")
        back = await opened(port, feed, f"{EVENTS}?last_event_id={feed.id_of(1)}")
        assert (await back.frame())[1]["type"] == "events_lost"


async def test_the_end_of_the_feed_ends_both_properly() -> None:
    feed = Feed()
    async with serve(feed) as port:
        stream = await opened(port, feed, EVENTS, "Connection: close")
        socket = await opened(port, feed, SOCKET, *UPGRADE)
        feed.close()
        assert (await stream.rest()).endswith(b"0\r\n\r\n")
        opcode, payload = await socket.message()
        assert (opcode, int.from_bytes(payload[:2], "big")) == (CLOSE, 1001)


async def test_a_quiet_stream_says_that_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_streams, "KEEP_ALIVE", 0.01)
    feed = Feed()
    async with serve(feed) as port:
        raw = await opened(port, feed)
        assert b": still here" in await raw.until(b": still here\n\n")
        tell(feed, 1)
        assert (await raw.frame())[1]["text"] == "0"
