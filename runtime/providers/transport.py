"""The HTTP client's transport with joined chunks. Knows no provider and no JSON.

The client's own transport takes no network backend, so this one puts the documented parts of
`httpcore2` together: a pool, a backend, and a stream that passes reads through a `ChunkJoiner`.
"""

import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from typing import cast

import httpcore2
import httpx2

from runtime.providers.chunk_joining import ChunkJoiner

KEEPALIVE_SECONDS = 90.0
MAX_IDLE_CONNECTIONS = 20


class JoiningStream(httpcore2.AsyncNetworkStream):
    """A network stream whose reads give one HTTP chunk in place of many.

    It also sends a POST's head together with its body: one packet and one wake-up of the server less.
    """

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream
        self._joiner = ChunkJoiner()
        self._held = b""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        """As the stream's own; b"" is the end."""
        if self._held:  # a body never came
            await self._send(b"", timeout)
        while True:
            data = await self._stream.read(max_bytes, timeout)
            if not data:
                return self._joiner.flush()
            joined = self._joiner.feed(data)
            if joined:
                return joined

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """As the stream's own. HTTP/1.1 reads a response only after its request went out."""
        self._joiner.expect_response()
        if not self._held and buffer[:5] == b"POST " and buffer[-4:] == b"\r\n\r\n":
            self._held = buffer
        else:
            await self._send(buffer, timeout)

    async def _send(self, buffer: bytes, timeout: float | None) -> None:  # noqa: ASYNC109
        held, self._held = self._held, b""
        await self._stream.write(held + buffer, timeout)

    async def aclose(self) -> None:
        """Close at once."""
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore2.AsyncNetworkStream:
        """The encrypted stream, its plain side joined too."""
        return JoiningStream(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> object:
        """As the stream's own."""
        return self._stream.get_extra_info(info)


class JoiningBackend(httpcore2.AsyncNetworkBackend):
    """trio connections with joined chunks."""

    def __init__(self) -> None:
        self._backend = httpcore2.TrioBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """As trio's own."""
        stream = await self._backend.connect_tcp(host, port, timeout, local_address, socket_options)
        return JoiningStream(stream)

    async def sleep(self, seconds: float) -> None:
        """As trio's own."""
        await self._backend.sleep(seconds)


class _Body(httpx2.AsyncByteStream):
    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async with aclosing(self._response.aiter_stream()) as chunks:
                async for chunk in chunks:
                    yield chunk
        except _CORE_ERRORS as error:
            raise _translated(error) from error

    async def aclose(self) -> None:
        await self._response.aclose()


class JoiningTransport(httpx2.AsyncBaseTransport):
    """Direct connections, HTTP/1.1, pooled. Raises what the client's own transport raises."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls,
            max_connections=None,
            max_keepalive_connections=MAX_IDLE_CONNECTIONS,
            keepalive_expiry=KEEPALIVE_SECONDS,
            network_backend=JoiningBackend(),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send it; the response's body is still to be read."""
        url = request.url
        core_request = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        try:
            response = await self._pool.handle_async_request(core_request)
        except _CORE_ERRORS as error:
            raise _translated(error) from error
        return httpx2.Response(
            status_code=response.status,
            headers=response.headers,
            stream=_Body(response),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close pooled connections."""
        await self._pool.aclose()


_CORE_ERRORS = (
    httpcore2.TimeoutException,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.ProxyError,
    httpcore2.UnsupportedProtocol,
)


def _translated(error: Exception) -> httpx2.TransportError:
    """The client's class of the same name: the two libraries keep them in step."""
    known = getattr(httpx2, type(error).__name__, httpx2.TransportError)
    return cast("type[httpx2.TransportError]", known)(str(error))
