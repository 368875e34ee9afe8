"""Asking a model over HTTP, whatever its API: one pooled client, retries before the first part, batches.

The adapter says where to ask, what to send and what the answer means (`Dialect`). Importing this module
imports the HTTP client (about 100 ms), so `runtime.providers.catalog` does it on demand.
"""

import logging
import os
import random
import secrets
import ssl
import urllib.request
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import cache

import httpx2
import trio

from runtime.errors import AuthRequired, ProviderError, ProviderErrorKind
from runtime.model import (
    ModelRequest,
    Part,
)
from runtime.providers.decoding import Decoder
from runtime.providers.failures import Peer, failure, parse_retry_after, status_failure
from runtime.providers.http_settings import Endpoint
from runtime.providers.reply import ReplyReader
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


def _new_call_id() -> str:
    return "call_" + secrets.token_hex(8)


def bearer(key: str) -> tuple[str, str]:
    """The header that most servers take a key in."""
    return "Authorization", f"Bearer {key}"


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one API makes of it all.

    body: a request's bytes. decoder: reads one answer, given the peer and what makes missing ids.
    key_header: the header, name and value, that carries a key.
    """

    endpoint: Endpoint
    body: Callable[[ModelRequest], bytes]
    decoder: Callable[[Peer, Callable[[], str]], Decoder]
    key_header: Callable[[str], tuple[str, str]] = bearer


class HttpProvider:
    """A model behind an HTTP API. An adapter is this with its `dialect`.

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
        self._dialect = self.dialect(settings)
        self._environ = environ
        self._jitter = jitter
        endpoint = self._dialect.endpoint
        self._url = httpx2.URL(endpoint.url)
        self._client = httpx2.AsyncClient(
            verify=_tls(),
            transport=transport or _transport(),
            headers=dict(endpoint.headers),
            timeout=httpx2.Timeout(
                connect=CONNECT_SECONDS,
                read=endpoint.idle_seconds,
                write=WRITE_SECONDS,
                pool=POOL_SECONDS,
            ),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=90.0),
        )

    def dialect(self, settings: ProviderSettings) -> Dialect:
        """The adapter's API for these settings. Raises ConfigError."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Close pooled connections."""
        await self._client.aclose()

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[Sequence[Part]]]:
        """See `runtime.ports.Provider`. Raises AuthRequired when the key's variable is not set."""
        peer = Peer(self.name, self._dialect.endpoint.host, request.model, self._settings.api_key_env)
        answer = await self._open(self._dialect.body(request), self._headers(), peer)
        try:
            async with aclosing(answer.batches()) as batches:
                yield batches
            await answer.linger()
        finally:
            await answer.release()

    def _headers(self) -> dict[str, str]:
        variable = self._settings.api_key_env
        if not variable:
            return {}
        key = self._environ.get(variable, "").strip()
        if key and key.isascii() and key.isprintable():
            return dict([self._dialect.key_header(key)])
        wrong = "holds characters that no key has" if key else "is not set"
        raise AuthRequired(
            f'The provider "{self.name}" needs a key: the environment variable {variable} {wrong}.'
        )

    async def _open(self, body: bytes, headers: dict[str, str], peer: Peer) -> "_Answer":
        """The answer, its first parts there. Raises ProviderError after the last try."""
        attempt = 0
        while True:
            try:
                return await self._begin(body, headers, peer)
            except ProviderError as error:
                delay = retry_delay(error, attempt, self._jitter)
                if delay is None:
                    raise
            attempt += 1
            await trio.sleep(delay)

    async def _begin(self, body: bytes, headers: dict[str, str], peer: Peer) -> "_Answer":
        response = await self._attempt(body, headers, peer)
        reader = ReplyReader(peer, self._dialect.decoder(peer, _new_call_id))
        answer = _Answer(response, reader, peer)
        try:
            await answer.begin()
        except BaseException:
            await answer.release()
            raise
        return answer

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


class _Answer:
    """One answer with status 200 while it is read."""

    def __init__(self, response: httpx2.Response, reader: ReplyReader, peer: Peer) -> None:
        self._response = response
        self._reader = reader
        self._chunks = _body(response)
        self._parts = _parts(reader, self._chunks, peer)
        self._first: Sequence[Part] = ()

    async def begin(self) -> None:
        """Read up to the first parts. Raises ProviderError; nothing was shown by then."""
        self._first = await anext(self._parts, ())

    async def batches(self) -> AsyncGenerator[Sequence[Part], None]:
        """All parts, the first ones included."""
        if self._first:
            yield self._first
        async for parts in self._parts:
            yield parts

    async def linger(self) -> None:
        """Let a complete answer end: its connection can serve again only if the body's end was read."""
        if self._reader.done:
            with trio.move_on_after(LINGER_SECONDS):
                await anext(self._chunks, None)

    async def release(self) -> None:
        """Close at once what was not read to its end."""
        with trio.CancelScope(shield=True):
            await self._parts.aclose()
        await _release(self._response, self._chunks)


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
