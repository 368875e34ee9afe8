"""What a client still sends when its app has ended is read and thrown away; the shape of refusals.

hypercorn hands messages over in a bounded queue and waits where it is full. Nobody empties that of an app
which has ended, or which refuses a body without reading it, and the connection would wait for ever. Every
answer that is not what was asked for is `{"error": {"status": …, "message": …}}`, one sentence that holds
nothing of what was sent. Knows no route.
"""

import logging
from collections.abc import Callable, Mapping

import h11
import trio
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

DISCONNECTS = ("http.disconnect", "websocket.disconnect")
BROKEN = (
    OSError, h11.ProtocolError, trio.BrokenResourceError, trio.BusyResourceError, trio.ClosedResourceError
)  # fmt: skip
"""What is raised where a client went away, or broke the rules of HTTP, while it was answered. Anybody can do
so, without a token too, and as often as he likes: it is worth no page of the log.
"""

log = logging.getLogger("wholeturn.gateway")


class Gone(OSError):
    """The connection can't be sent to any more; for starlette the client is disconnected then."""


class Draining:
    """The app, with a nursery for what is left to be read when it has ended.

    A server may offer `begin` and `end` in the state of a connection: called around each request, its rest
    included.
    """

    def __init__(self, app: ASGIApp, nursery: trio.Nursery) -> None:
        self._app = app
        self._nursery = nursery

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, and see to its rest."""
        over = False
        state = scope.get("state", {})
        end: Callable[[], None] = state.get("end", _nothing)

        async def sending(message: Message) -> None:
            try:
                await send(message)
            except BROKEN as error:
                raise Gone("the client has gone") from error

        async def noting() -> Message:
            nonlocal over
            message = await receive()
            over = over or message["type"] in DISCONNECTS
            return message

        state.get("begin", _nothing)()
        try:
            await self._app(scope, noting, sending)
        except* (Gone, WebSocketDisconnect):
            log.info("a client has gone before it was answered")
        finally:
            if over:
                end()
            else:
                self._nursery.start_soon(_read_rest, receive, end)


async def _read_rest(receive: Receive, end: Callable[[], None]) -> None:
    try:
        await drain(receive)
    finally:
        end()


def _nothing() -> None:
    """The server does not want to know."""


async def drain(receive: Receive) -> None:
    """Read to the end."""
    while (await receive())["type"] not in DISCONNECTS:
        pass


async def answer_unread(answer: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request whose body nobody wants."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(drain, receive)
        await answer(scope, receive, send)
        nursery.cancel_scope.cancel()


def refusal(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The answer to a request that is refused, or could not be served."""
    body = {"error": {"status": status, "message": message}}
    return JSONResponse(body, status, headers=dict(headers or {}))


async def refused(request: HTTPConnection, error: Exception) -> Response:
    """A starlette handler for what routes raise: HTTPException with its status, all else as 500."""
    if isinstance(error, HTTPException):
        return refusal(error.status_code, error.detail, error.headers)
    return refusal(500, "Something went wrong inside the gateway; its log has the details.")
