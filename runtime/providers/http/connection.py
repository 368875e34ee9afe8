"""One HTTP/1.1 connection: a request out, a response in. Knows no pool, no provider and no JSON.

Parsed by httptools (the parser of Node.js): a response costs a fifth of what it does in pure Python, and
many small chunks that came in one read are one piece of the body. Raises httpx2's exceptions.
"""

import math
import os
import select
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Protocol

import httptools
import httpx2
import trio

from runtime.values.model import nothing

READ_BYTES = 65_536
HEAD_BYTES = 262_144
"""How long a response's head may be."""
CONTINUE, OK = 100, 200
_BROKEN = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)


class Body(httpx2.AsyncByteStream):
    """A request's body that leaves only when `ready` returns: all else is prepared meanwhile.

    It can be sent again. sent: called each time when it has left.
    """

    def __init__(
        self, content: bytes, ready: Callable[[], Awaitable[None]], sent: Callable[[], object] = nothing
    ) -> None:
        self.content = content
        self.ready = ready
        self.sent = sent

    async def __aiter__(self) -> AsyncIterator[bytes]:
        await self.ready()
        yield self.content
        self.sent()


class ByteStream(Protocol):
    """What a connection is made of: a trio stream, encrypted or not."""

    async def send_all(self, data: bytes) -> None: ...

    async def receive_some(self, max_bytes: int) -> bytes | bytearray: ...

    async def aclose(self) -> None: ...


class _Response:
    """What the parser told of a response so far."""

    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.headers: list[tuple[bytes, bytes]] = []
        self.head = self.done = self.kept_alive = False
        self.pieces: list[bytes] = []
        self.size = 0

    @property
    def status(self) -> int:
        return self.parser.get_status_code()

    @property
    def framed(self) -> bool:
        """Whether the response itself says where it ends; else the connection's end does."""
        names = {name.lower() for name, _ in self.headers}
        return bool(names & {b"content-length", b"transfer-encoding"})

    def feed(self, data: bytes) -> None:
        """Take in what was read. Raises RemoteProtocolError."""
        self.size += 0 if self.head else len(data)
        try:
            self.parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            raise httpx2.RemoteProtocolError(f"not an HTTP response: {error}") from None
        if self.size > HEAD_BYTES and not self.head:
            raise httpx2.RemoteProtocolError("the head of the response does not end")

    def take(self) -> bytes:
        """The body that came since the last call."""
        pieces, self.pieces = self.pieces, []
        return b"".join(pieces)

    # ------------------------------------------------------------ called by the parser

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        if CONTINUE <= self.status < OK:  # an interim response; the real one follows
            self.headers.clear()
        else:
            self.head = True

    def on_body(self, body: bytes) -> None:
        self.pieces.append(body)

    def on_message_complete(self) -> None:
        self.done = self.head
        self.kept_alive = self.parser.should_keep_alive()


class Connection:
    """One connection, for one exchange at a time. Times in seconds, by phase, as in `httpx2.Timeout`."""

    def __init__(self, stream: ByteStream, socket: trio.socket.SocketType) -> None:
        self._stream = stream
        self._socket = socket
        self._response: _Response | None = None
        self._is_plain = os.name == "posix" and isinstance(stream, trio.SocketStream)
        self._rested = False
        self.idle_since = 0.0

    async def send(self, head: bytes, body: Body, seconds: float | None) -> None:
        """Head and body in one piece: one packet and one wake-up of the server less."""
        await body.ready()
        self._rested = False
        with _Phase(seconds, httpx2.WriteTimeout, httpx2.WriteError):
            await self._stream.send_all(head + body.content)
        body.sent()

    async def head(self, seconds: float | None) -> tuple[int, list[tuple[bytes, bytes]]]:
        """Status and headers of the response."""
        response = self._response = _Response()
        while not response.head:
            data = await self._read(seconds)
            if not data:
                raise httpx2.RemoteProtocolError("the server hung up without a response")
            response.feed(data)
        return response.status, response.headers

    async def body(self, seconds: float | None) -> AsyncIterator[bytes]:
        """The body, everything that came in one read in one piece."""
        response = self._response
        assert response is not None, "the head comes first"
        if piece := response.take():
            yield piece
        while not response.done:
            data = await self._read(seconds)
            if not data:
                if response.framed:
                    raise httpx2.RemoteProtocolError("the server hung up in the middle of its response")
                break
            response.feed(data)
            if piece := response.take():
                yield piece

    @property
    def reusable(self) -> bool:
        """Whether another exchange may follow: the response was read to its end and nobody hangs up."""
        response = self._response
        return response is not None and response.done and response.kept_alive

    @property
    def quiet(self) -> bool:
        """Whether nothing came since: an idle server that sends something sends its end."""
        poll = select.poll()
        poll.register(self._socket.fileno(), select.POLLIN)
        return not poll.poll(0)

    async def aclose(self) -> None:
        """Close at once, without a word."""
        await trio.aclose_forcefully(self._stream)  # type: ignore[arg-type]

    async def _read(self, seconds: float | None) -> bytes:
        data = self._at_hand() if self._rested else None
        # After one read without a turn of the loop there is one with it: others wait too.
        self._rested = data is None
        if data is not None:
            return data
        with _Phase(seconds, httpx2.ReadTimeout, httpx2.ReadError):
            return bytes(await self._stream.receive_some(READ_BYTES))

    def _at_hand(self) -> bytes | None:
        """What has come already; None for nothing, and for a failure, which the next read tells."""
        try:
            return os.read(self._socket.fileno(), READ_BYTES) if self._is_plain else None
        except OSError:
            return None


class _Phase:
    """Bounds a phase and gives its failures the client's names. No generator: it is entered at every read."""

    __slots__ = ("_broken", "_late", "_scope")

    def __init__(
        self, seconds: float | None, late: type[httpx2.TimeoutException], broken: type[httpx2.NetworkError]
    ) -> None:
        self._scope = trio.move_on_after(math.inf if seconds is None else seconds)
        self._late = late
        self._broken = broken

    def __enter__(self) -> None:
        self._scope.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # It swallows nothing but its own deadline.
        self._scope.__exit__(kind, error, trace)
        if self._scope.cancelled_caught:
            raise self._late("too slow") from None
        if isinstance(error, _BROKEN):
            raise self._broken(str(error)) from error
