"""Around an ASGI app: what a client goes on sending to an app that has ended is read and thrown away.

hypercorn hands messages over in a bounded queue and waits where it is full. Nobody empties that of an app
which has ended, or which refuses a body without reading it, and the connection would wait for ever.
"""

import trio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

DISCONNECTS = ("http.disconnect", "websocket.disconnect")


class Draining:
    """The app, with a nursery for what is left to be read when it has ended."""

    def __init__(self, app: ASGIApp, nursery: trio.Nursery) -> None:
        self._app = app
        self._nursery = nursery

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, and see to its rest."""
        over = False

        async def noting() -> Message:
            nonlocal over
            message = await receive()
            over = over or message["type"] in DISCONNECTS
            return message

        try:
            await self._app(scope, noting, send)
        finally:
            if not over:
                self._nursery.start_soon(drain, receive)


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
