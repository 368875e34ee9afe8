"""The gateway's accepted sockets: counted, bounded in time where the other side does not read, cut at will.

Knows of HTTP only how the closing frame of a WebSocket begins, and how HTTP/2 does.
"""

import ssl
from collections.abc import Callable

import trio

SEND_SECONDS = 30.0
"""For one piece of what is sent: who takes no more for so long is gone, or wishes us ill."""
STUCK_SECONDS = 0.3
"""The same when all ends: nobody waits for such a client then."""
CLOSE_SECONDS = 2.0
"""How long a client may take to answer the closing of its WebSocket."""
CROWD_SECONDS = 60.0
"""From one complaint about too many connections to the next."""
READ_SIZE = 16 * 1024
"""At once: a compressed frame may grow a thousandfold before its size is seen."""
_PIECE = 64 * 1024
_CLOSING = 0x88
_SETTINGS = b"\x04\x00\x00\x00\x00\x00"
"""How HTTP/2 begins, behind the length of its first frame."""

Closed = Callable[["Wire"], None]
Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]


class Wire(trio.abc.Stream):
    """One client's socket, as hypercorn uses it. closed: called once when it has been closed.

    over: called when nothing more can come and no request is being served. hypercorn itself sleeps until its
    next ping or the end of its patience, and keeps a socket that nobody is behind any more.
    """

    def __init__(self, stream: Stream, socket: trio.socket.SocketType, closed: Closed) -> None:
        self.socket = socket
        self.over: Callable[[], object] = _nothing
        self._stream = stream
        self._closed: Closed | None = closed
        self._deadline = self._sending_since = float("inf")
        self._served = 0
        self._ended = False

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Some bytes; b"" at the end, which is near once the closing of a WebSocket was sent."""
        data = b""
        try:
            with trio.move_on_at(self._deadline):
                data = bytes(await self._stream.receive_some(min(max_bytes or READ_SIZE, READ_SIZE)))
        finally:
            self._ended = not data
            self._leave()
        return data

    def begin(self) -> None:
        """A request is served from now on."""
        self._served += 1

    def end(self) -> None:
        """It was, and all that belongs to it was read."""
        self._served -= 1
        self._leave()

    def _leave(self) -> None:
        if self._ended and not self._served:
            self.over()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send all. Raises BrokenResourceError when the client does not take it in time."""
        view = memoryview(data)
        if view and view[0] == _CLOSING:
            self._deadline = min(self._deadline, trio.current_time() + CLOSE_SECONDS)
        if view and not view[0] and bytes(view[3:9]) == _SETTINGS:
            # hypercorn changes to HTTP/2 when a client asks; none of the limits here are made for that.
            self.abort()
            raise trio.BrokenResourceError("HTTP/2 is not spoken")
        for at in range(0, len(view), _PIECE):
            self._sending_since = trio.current_time()
            with trio.move_on_after(SEND_SECONDS) as scope:
                await self._stream.send_all(view[at : at + _PIECE])
            self._sending_since = float("inf")
            if scope.cancelled_caught:
                self.abort()
                raise trio.BrokenResourceError("the client does not read")

    @property
    def stuck(self) -> bool:
        """Whether the client has taken nothing for a while of what is there for it."""
        return trio.current_time() - self._sending_since > STUCK_SECONDS

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        """Nothing more is sent."""
        if isinstance(self._stream, trio.SocketStream):
            await self._stream.send_eof()

    async def aclose(self) -> None:
        """Close it in the proper way, for as long as the client takes part in that."""
        try:
            with trio.move_on_after(CLOSE_SECONDS, shield=True):
                await self._stream.aclose()
        finally:
            self.abort()

    def abort(self) -> None:
        """Close it now: whatever is being read or sent fails."""
        self.socket.close()
        closed, self._closed = self._closed, None
        if closed is not None:
            closed(self)


class TlsWire(Wire):
    """The same behind TLS."""

    def __init__(self, stream: trio.SSLStream[trio.SocketStream], closed: Closed) -> None:
        super().__init__(stream, stream.transport_stream.socket, closed)
        self.transport_stream = stream.transport_stream
        self.do_handshake = stream.do_handshake

    def selected_alpn_protocol(self) -> str:
        """HTTP/1.1 is all that is spoken."""
        return "http/1.1"


class Wires:
    """All of them."""

    def __init__(self) -> None:
        self._open: set[Wire] = set()
        self._told = float("-inf")
        self._changed = trio.lowlevel.ParkingLot()

    def __len__(self) -> int:
        return len(self._open)

    def crowded(self) -> bool:
        """There are too many. Whether it is time to say so: anybody can bring a crowd, and keep it up."""
        now = trio.current_time()
        due = now >= self._told + CROWD_SECONDS
        self._told = now if due else self._told
        return due

    def open(self, stream: trio.SocketStream, context: ssl.SSLContext | None) -> Wire:
        """Take in a connection that was accepted. context: for TLS."""
        wire: Wire
        if context is None:
            wire = Wire(stream, stream.socket, self._closed)
        else:
            tls = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
            wire = TlsWire(tls, self._closed)
        self._open.add(wire)
        return wire

    async def wait_for_none(self) -> None:
        """Return when all are closed."""
        while self._open:
            await self._changed.park()

    def abort_stuck(self) -> None:
        """Cut those who do not read."""
        for wire in tuple(self._open):
            if wire.stuck:
                wire.abort()

    def abort_all(self) -> None:
        """Cut every connection."""
        for wire in tuple(self._open):
            wire.abort()

    def _closed(self, wire: Wire) -> None:
        self._open.discard(wire)
        self._changed.unpark_all()


def _nothing() -> None:
    """Nobody wants to know."""
