"""The event feed over HTTP: Server-Sent Events at `/api/events`, WebSocket at `/api/events/ws`.

Both give the same frames, from now on or from behind an event: `Last-Event-ID`, or `last_event_id` in the
query. Knows nothing of sessions, and of what is told only that each event is JSON with an id.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import trio
from starlette.datastructures import Headers, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from acp_server.gateway.feed.event_frames import TYPES
from acp_server.gateway.feed.feed import Feed
from acp_server.gateway.feed.ring import Reader, Told, Wanted

if TYPE_CHECKING:
    from acp_server.gateway.sessions.process_app import GatewayState

KEEP_ALIVE = 15.0
"""Seconds without an event until a comment says that the stream is alive."""
RETRY = 2000
"""Milliseconds after which a browser comes back by itself."""
SUBPROTOCOL = "events"
MEDIA_TYPE = "text/event-stream; charset=utf-8"
CLOSED, TOO_SLOW, BAD_QUERY = 1001, 1013, 1008
"""Codes with which a WebSocket is closed."""
ENDING_SECONDS = 1.0
"""How long the end of a stream may take to be said."""


def routes(state: "GatewayState") -> list[BaseRoute]:
    """The feed's routes."""
    feed = state.feed

    async def stream(request: Request) -> Response:
        wanted = wanted_in(request.query_params)
        return EventStream(feed, wanted, last_id(request.headers, request.query_params))

    async def socket(websocket: WebSocket) -> None:
        await serve_socket(feed, websocket)

    return [Route("/api/events", stream), WebSocketRoute("/api/events/ws", socket)]


def wanted_in(query: QueryParams) -> Wanted:
    """The events that are asked for: `session_id` and `types`, each a list with commas, or given repeatedly.

    Raises HTTPException for a type that there is not.
    """
    types = listed(query, "types")
    if types - TYPES:
        raise HTTPException(400, f"types: one of them is none of {', '.join(sorted(TYPES))}")
    return Wanted(listed(query, "session_id"), types)


def listed(query: QueryParams, name: str) -> frozenset[str]:
    """All values of a parameter."""
    values = (part.strip() for text in query.getlist(name) for part in text.split(","))
    return frozenset(filter(None, values))


def last_id(headers: Headers, query: QueryParams) -> str | None:
    """The last event that the client has. A browser that comes back has it in the header; its URL is old."""
    return headers.get("last-event-id") or query.get("last_event_id") or None


# ---------------------------------------------------------------- server-sent events


class EventStream(Response):
    """An answer that goes on until one side ends it."""

    def __init__(self, feed: Feed, wanted: Wanted, after: str | None) -> None:
        super().__init__(media_type=None, headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        self.raw_headers = [
            (b"content-type", MEDIA_TYPE.encode()),
            *(header for header in self.raw_headers if header[0] != b"content-length"),
        ]
        self._feed = feed
        self._wanted = wanted
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the head at once, then whatever there is to be told."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body"})
            return
        reading = Reading(self._feed, self._wanted, self._after, scope)
        await reading.run(lambda reader: self._send_all(reader, send), receive, "http.disconnect")
        if not reading.was_cut:
            with trio.move_on_after(ENDING_SECONDS):
                await send({"type": "http.response.body"})

    async def _send_all(self, reader: Reader, send: Send) -> None:
        data = f"retry: {RETRY}\n\n".encode()
        while data:
            await send({"type": "http.response.body", "body": data, "more_body": True})
            data = b": still here\n\n"
            with trio.move_on_after(KEEP_ALIVE):
                data = b"".join([told.stream for told in await reader.some()])


# ---------------------------------------------------------------- WebSocket


async def serve_socket(feed: Feed, websocket: WebSocket) -> None:
    """Send frames until one side ends it; what the client sends is ignored.

    One frame a message. With `batch=true` a message is an array of all frames that are there: for clients
    that follow much, since a message costs more than what is in it.
    """
    query = websocket.query_params
    offered = SUBPROTOCOL in websocket.scope.get("subprotocols", [])
    await websocket.accept(SUBPROTOCOL if offered else None)
    try:
        wanted = wanted_in(query)
    except HTTPException as error:
        await websocket.close(BAD_QUERY, error.detail[:120])
        return
    pack = one_message if query.get("batch", "").lower() in ("true", "1") else many_messages
    reading = Reading(feed, wanted, last_id(websocket.headers, query), websocket.scope)

    async def send_all(reader: Reader) -> None:
        while found := await reader.some():
            for text in pack(found):
                await websocket.send({"type": "websocket.send", "text": text})

    await reading.run(send_all, websocket.receive, "websocket.disconnect")
    if not reading.gone:
        code = TOO_SLOW if reading.was_cut else CLOSED
        with trio.move_on_after(ENDING_SECONDS):
            await websocket.close(code)


def many_messages(found: Sequence[Told]) -> list[str]:
    """A message a frame."""
    return [told.json.decode() for told in found]


def one_message(found: Sequence[Told]) -> list[str]:
    """One message for all."""
    return [(b"[%b]" % b",".join(told.json for told in found)).decode()]


# ---------------------------------------------------------------- both


class Reading:
    """One client that reads the feed: ends when it goes away, is cut, or the feed is closed.

    A server may offer `cut` in the state of a connection: it closes the connection at once. Without it a
    client that reads nothing at all holds its one chunk until the system gives the connection up.
    """

    def __init__(self, feed: Feed, wanted: Wanted, after: str | None, scope: Scope) -> None:
        self.gone = False
        self.was_cut = False
        self._feed = feed
        self._wanted = wanted
        self._after = after
        self._drop: Callable[[], None] = scope.get("state", {}).get("cut", no_cut)
        self._sending = trio.CancelScope()

    async def run(
        self, send_all: Callable[[Reader], Awaitable[None]], receive: Receive, disconnect: str
    ) -> None:
        """Send until it is over. disconnect: the type of the message that says that the client has gone."""
        with self._feed.read(self._wanted, self._after, self._cut) as reader:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._listen, receive, disconnect)
                with self._sending:
                    await send_all(reader)
                nursery.cancel_scope.cancel()

    def _cut(self) -> None:
        self.was_cut = True
        self._sending.cancel()
        self._drop()

    async def _listen(self, receive: Receive, disconnect: str) -> None:
        while (await receive())["type"] != disconnect:
            pass
        self.gone = True
        self._sending.cancel()


def no_cut() -> None:
    """For a server that can't close a connection at once."""
