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
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import cache

import httpx2
import trio

from runtime.errors import AuthRequired, ProviderError
from runtime.model import (
    ModelRequest,
    Part,
)
from runtime.providers.answer import Answer, broken, error_body
from runtime.providers.decoding import Decoder
from runtime.providers.failures import Peer, parse_retry_after, status_failure
from runtime.providers.http_settings import Endpoint
from runtime.providers.reply import ReplyReader
from runtime.providers.retrying import retry_delay
from runtime.providers.settings import ProviderSettings
from runtime.providers.transport import JoiningTransport

CONNECT_SECONDS, WRITE_SECONDS, POOL_SECONDS = 10.0, 60.0, 120.0

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

    async def _open(self, body: bytes, headers: dict[str, str], peer: Peer) -> Answer:
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

    async def _begin(self, body: bytes, headers: dict[str, str], peer: Peer) -> Answer:
        response = await self._attempt(body, headers, peer)
        reader = ReplyReader(peer, self._dialect.decoder(peer, _new_call_id))
        answer = Answer(response, reader, peer)
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
        except (httpx2.HTTPError, OSError, UnicodeError) as error:
            raise broken(peer, error) from None
        if response.status_code == httpx2.codes.OK:
            return response
        text = await error_body(response)
        told = response.headers.get("retry-after"), response.headers.get("retry-after-ms")
        raise status_failure(peer, response.status_code, text, parse_retry_after(*told))
