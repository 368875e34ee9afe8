"""OpenAI chat completions over HTTP, streamed: thin I/O around the pure `openai_*` modules.

Serves every compatible base URL. Importing this module imports the HTTP client (about 100 ms), so
`runtime.providers.catalog` does it on demand.
"""

import logging
import os
import random
import secrets
import ssl
import urllib.request
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import cache

import httpx2
import trio

from runtime.errors import AuthRequired, ProviderError, ProviderErrorKind
from runtime.model import (
    ModelRequest,
    Part,
)
from runtime.providers.failures import Peer, failure, parse_retry_after, status_failure
from runtime.providers.openai_reply import ReplyReader
from runtime.providers.openai_request import BodyWriter
from runtime.providers.openai_settings import Endpoint, endpoint
from runtime.providers.retrying import retry_delay
from runtime.providers.settings import ProviderSettings
from runtime.providers.transport import JoiningTransport

CONNECT_SECONDS, WRITE_SECONDS, POOL_SECONDS = 10.0, 60.0, 120.0
ERROR_BODY_SECONDS, ERROR_BODY_BYTES = 15.0, 64 * 1024
END_SECONDS = 5.0
"""How long figures may trail a complete answer before it is taken as it is."""
LINGER_SECONDS = 0.25
"""How long a complete answer may take to end its body before its connection is given up."""

# Both would log addresses at INFO and headers, the key among them, at DEBUG.
for _name in ("httpx2", "httpcore2"):
    logging.getLogger(_name).setLevel(logging.WARNING)


@cache
def _tls() -> ssl.SSLContext:
    """Loading the certificates takes 30 ms and more: once for all providers."""
    return httpx2.create_ssl_context()


def _transport() -> httpx2.AsyncBaseTransport | None:
    """None lets the client build its own, which knows proxies, when the environment names one."""
    return None if urllib.request.getproxies() else JoiningTransport(_tls())


def warm() -> None:
    """Do once what the first provider would have to wait for. Blocks: meant for a thread."""
    httpx2.AsyncClient(verify=_tls(), transport=_transport())


def create(settings: ProviderSettings) -> "OpenAIProvider":
    """The provider of a `kind = "openai"` section. Raises ConfigError."""
    return OpenAIProvider(settings)


def _new_call_id() -> str:
    return "call_" + secrets.token_hex(8)


class OpenAIProvider:
    """A model behind a chat completions API.

    One pooled client, kept alive between requests. transport, environ and jitter are given by
    tests and embedders. Requests that failed before any part came are tried again, see `retrying`.
    """

    def __init__(
        self,
        settings: ProviderSettings,
        *,
        transport: httpx2.AsyncBaseTransport | None = None,
        environ: Mapping[str, str] = os.environ,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.name = settings.name
        self._settings = settings
        self._endpoint: Endpoint = endpoint(settings)
        self._writer = BodyWriter(self._endpoint.shape)
        self._environ = environ
        self._jitter = jitter
        self._url = httpx2.URL(self._endpoint.url)
        self._client = httpx2.AsyncClient(
            verify=_tls(),
            transport=transport or _transport(),
            headers=dict(self._endpoint.headers),
            timeout=httpx2.Timeout(
                connect=CONNECT_SECONDS,
                read=self._endpoint.idle_seconds,
                write=WRITE_SECONDS,
                pool=POOL_SECONDS,
            ),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=90.0),
        )

    async def aclose(self) -> None:
        """Close pooled connections."""
        await self._client.aclose()

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[Sequence[Part]]]:
        """See `runtime.ports.Provider`. Raises AuthRequired when the key's variable is not set."""
        peer = Peer(self.name, self._endpoint.host, request.model, self._settings.api_key_env)
        response = await self._open(self._writer.body(request), self._headers(), peer)
        chunks = _body(response)
        reader = ReplyReader(peer, _new_call_id)
        try:
            async with aclosing(_parts(reader, chunks, peer)) as parts:
                yield parts
            if reader.done:
                # The connection can serve again only if the body's end was read.
                with trio.move_on_after(LINGER_SECONDS):
                    await anext(chunks, None)
        finally:
            await _release(response, chunks)

    def _headers(self) -> dict[str, str]:
        variable = self._settings.api_key_env
        if not variable:
            return {}
        key = self._environ.get(variable, "").strip()
        if key and key.isascii() and key.isprintable():
            return {"Authorization": f"Bearer {key}"}
        wrong = "holds characters that no key has" if key else "is not set"
        raise AuthRequired(
            f'The provider "{self.name}" needs a key: the environment variable {variable} {wrong}.'
        )

    async def _open(self, body: bytes, headers: dict[str, str], peer: Peer) -> httpx2.Response:
        """The response whose body is still to be read. Raises ProviderError after the last try."""
        attempt = 0
        while True:
            try:
                return await self._attempt(body, headers, peer)
            except ProviderError as error:
                delay = retry_delay(error, attempt, self._jitter)
                if delay is None:
                    raise
            attempt += 1
            await trio.sleep(delay)

    async def _attempt(self, body: bytes, headers: dict[str, str], peer: Peer) -> httpx2.Response:
        request = self._client.build_request("POST", self._url, content=body, headers=headers)
        try:
            response = await self._client.send(request, stream=True)
        except (httpx2.HTTPError, OSError) as error:
            raise _broken(peer, error) from None
        if response.status_code == httpx2.codes.OK:
            return response
        text = await _error_body(response)
        told = response.headers.get("retry-after"), response.headers.get("retry-after-ms")
        raise status_failure(peer, response.status_code, text, parse_retry_after(*told))


def _body(response: httpx2.Response) -> AsyncIterator[bytes]:
    plain = response.headers.get("content-encoding", "identity") == "identity"
    return response.aiter_raw() if plain else response.aiter_bytes()


async def _error_body(response: httpx2.Response) -> bytes:
    """What the server says of its refusal, as much as is kept and as can be had in time."""
    kept = bytearray()
    with trio.move_on_after(ERROR_BODY_SECONDS):
        try:
            async for chunk in response.aiter_bytes():
                kept += chunk[: ERROR_BODY_BYTES - len(kept)]
        except (httpx2.HTTPError, OSError):
            pass
    with trio.CancelScope(shield=True):
        await response.aclose()
    return bytes(kept)


async def _parts(
    reader: ReplyReader, chunks: AsyncIterator[bytes], peer: Peer
) -> AsyncGenerator[Sequence[Part], None]:
    ended = False
    while not ended:
        chunk = await _next(reader, chunks, peer)
        parts = reader.feed(chunk)
        ended = reader.done or not chunk
        if ended and not reader.failure:
            parts = parts + reader.end()
        if parts:
            yield parts
        if reader.failure:
            raise reader.failure


async def _next(reader: ReplyReader, chunks: AsyncIterator[bytes], peer: Peer) -> bytes:
    """The next bytes; empty at the end, and when an answer that is complete just does not end."""
    try:
        with trio.move_on_after(END_SECONDS if reader.stopping else float("inf")):
            return await anext(chunks, b"")
        return b""
    except (httpx2.HTTPError, OSError) as error:
        if reader.stopping:
            return b""
        raise _broken(peer, error, while_reading=True) from None


async def _release(response: httpx2.Response, chunks: AsyncIterator[bytes]) -> None:
    """Close at once what was not read to its end."""
    with trio.CancelScope(shield=True):
        await response.aclose()
        try:
            # The body is a chain of async generators. One left half-way is finished by the garbage
            # collector, noisily; with the connection closed this finishes all of them here.
            async for _ in chunks:
                pass
        except (httpx2.HTTPError, httpx2.StreamError, OSError):
            return


def _broken(peer: Peer, error: Exception, *, while_reading: bool = False) -> ProviderError:
    """The error for an exchange that the HTTP client gave up."""
    kind, sentence = next((kind, text) for types, kind, text in _BROKEN if isinstance(error, types))
    if while_reading and kind is ProviderErrorKind.TIMEOUT:
        sentence = "stopped in the middle of its answer"
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        sentence = "showed a TLS certificate that this machine does not trust"
    return failure(peer, kind, sentence=sentence)


_BROKEN: tuple[tuple[type[Exception] | tuple[type[Exception], ...], ProviderErrorKind, str], ...] = (
    (httpx2.ProxyError, ProviderErrorKind.UNREACHABLE, "cannot be reached through the configured proxy"),
    (
        (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout),
        ProviderErrorKind.UNREACHABLE,
        "cannot be reached; check that the server is running and that base_url is right",
    ),
    (httpx2.TimeoutException, ProviderErrorKind.TIMEOUT, ""),
    (
        (httpx2.LocalProtocolError, httpx2.UnsupportedProtocol),
        ProviderErrorKind.BAD_REQUEST,
        "was not asked: a configured header or address cannot be sent",
    ),
    (httpx2.DecodingError, ProviderErrorKind.MALFORMED, ""),
    (Exception, ProviderErrorKind.STREAM_DROPPED, ""),
)
"""The first row that fits; an empty sentence leaves it to the kind's own."""
