"""The HTTP client's transport for one model: direct connections, HTTP/1.1, kept alive. Knows no JSON.

The client's own transport costs a millisecond of computing time an exchange, most of a short turn. This one
answers to the same interface, so tests and proxies use that of the client in its place.
"""

import ssl
from collections.abc import AsyncIterator
from typing import cast

import httpx2
import trio

from runtime.providers.http.connection import Body, ByteStream, Connection

KEEPALIVE_SECONDS = 90.0
MAX_IDLE_CONNECTIONS = 20

_UNSENDABLE = (b"\r", b"\n", b"\0")


class KeepAliveTransport(httpx2.AsyncBaseTransport):
    """Any number of connections to one server at a time; some of them wait for the next request."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls
        self._idle: list[Connection] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send it; the response's body is still to be read."""
        head = _head(request)
        limits = cast("dict[str, float | None]", request.extensions.get("timeout", {}))
        connection = await self._idle_one() or await self._connect(request.url, limits.get("connect"))
        try:
            await connection.send(head, cast("Body", request.stream), limits.get("write"))
            status, headers = await connection.head(limits.get("read"))
        except BaseException:
            await _drop(connection)
            raise
        return httpx2.Response(
            status, headers=headers, stream=_ResponseBody(self, connection, limits.get("read"))
        )

    async def aclose(self) -> None:
        """Close what waits."""
        idle, self._idle = self._idle, []
        for connection in idle:
            await _drop(connection)

    async def give_back(self, connection: Connection) -> None:
        """Keep a connection for the next request, if it can serve one."""
        if connection.reusable and len(self._idle) < MAX_IDLE_CONNECTIONS:
            connection.idle_since = trio.current_time()
            self._idle.append(connection)
        else:
            await _drop(connection)

    async def _idle_one(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            young = trio.current_time() - connection.idle_since < KEEPALIVE_SECONDS
            if young and connection.quiet:
                return connection
            await _drop(connection)
        return None

    async def _connect(self, url: httpx2.URL, seconds: float | None) -> Connection:
        secure = url.scheme == "https"
        try:
            with trio.fail_after(float("inf") if seconds is None else seconds):
                plain = await trio.open_tcp_stream(url.host, url.port or (443 if secure else 80))
                stream: ByteStream = plain
                if secure:
                    stream = await self._encrypted(plain, url.host)
        except trio.TooSlowError:
            raise httpx2.ConnectTimeout("too slow") from None
        except (OSError, trio.BrokenResourceError) as error:
            raise httpx2.ConnectError(str(error)) from error
        return Connection(stream, plain.socket)

    async def _encrypted(self, plain: trio.SocketStream, host: str) -> ByteStream:
        stream = trio.SSLStream(plain, self._tls, server_hostname=host, https_compatible=True)
        try:
            await stream.do_handshake()
        except BaseException:
            await trio.aclose_forcefully(plain)
            raise
        return cast("ByteStream", stream)


class _ResponseBody(httpx2.AsyncByteStream):
    def __init__(self, owner: KeepAliveTransport, connection: Connection, seconds: float | None) -> None:
        self._owner = owner
        self._connection: Connection | None = connection
        self._pieces = connection.body(seconds)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await self._owner.give_back(connection)


def _head(request: httpx2.Request) -> bytes:
    lines = [request.method.encode() + b" " + request.url.raw_path + b" HTTP/1.1"]
    for name, value in request.headers.raw:
        if any(sign in name or sign in value for sign in _UNSENDABLE):
            raise httpx2.LocalProtocolError("a header cannot be sent")
        lines.append(name + b": " + value)
    return b"\r\n".join(lines) + b"\r\n\r\n"


async def _drop(connection: Connection) -> None:
    with trio.CancelScope(shield=True):
        await connection.aclose()
