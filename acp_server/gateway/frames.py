"""A WebSocket as the stream of lines that a connection reads and writes: one message a text frame.

Knows neither JSON nor the protocol. Line ends inside a frame are blanks between the parts of its JSON.
"""

from collections.abc import Callable

import trio
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

NORMAL, GOING_AWAY, NOT_TEXT = 1000, 1001, 1003
"""Close codes of RFC 6455. 1009 (too big) is the server's own; it looks at the size while it reads."""


class FrameStream(trio.abc.Stream):
    """The stream. left: called once when the client has gone, before the reader learns of the end."""

    def __init__(self, socket: WebSocket, left: Callable[[], None]) -> None:
        self._socket = socket
        self._left = left
        self._over = False
        self._code = GOING_AWAY

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """The next frame as a line, however long; b"" at the end. A frame that is not text is the end."""
        if self._over:
            return b""
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            return self._end(NORMAL)
        text = message.get("text")
        if text is None:
            return self._end(NOT_TEXT)
        return str(text).encode().replace(b"\n", b" ") + b"\n"

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send whole lines, a frame each. Raises BrokenResourceError when the client has gone."""
        for line in bytes(data).split(b"\n")[:-1]:
            if self._over:
                raise trio.BrokenResourceError("the client has gone")
            try:
                await self._socket.send_text(line.decode())
            except (WebSocketDisconnect, RuntimeError) as error:
                raise trio.BrokenResourceError("the client has gone") from error

    async def wait_send_all_might_not_block(self) -> None:
        """Nothing is known about that, so this does not wait."""
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        """Say why, if anybody is there to hear it."""
        self._over = True
        if self._socket.client_state is WebSocketState.CONNECTED:
            await self._socket.close(self._code)

    def _end(self, code: int) -> bytes:
        self._over, self._code = True, code
        self._left()
        return b""
