"""Asking a model over HTTP, whatever its API: one pooled client, retries before the first part, batches.

The adapter says where to ask, what to send and what the answer means (`Dialect`). Importing this module
imports the HTTP client (about 100 ms), so `runtime.providers.catalog` does it on demand.
"""

import logging
import os
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field

import httpx2

from runtime.providers.errors.failures import Peer, parse_retry_after, status_failure
from runtime.providers.http.answer import Answer, broken, error_body
from runtime.providers.http.connection import Body
from runtime.providers.http.decoding import Decoder
from runtime.providers.http.event_stream import ReplyReader
from runtime.providers.http.settings import Endpoint
from runtime.providers.http.transport import KeepAliveTransport
from runtime.providers.settings import ProviderSettings
from runtime.values.errors import AuthRequired, ConfigError, ProviderErrorKind
from runtime.values.http_environment import ProxiedTransport, proxy_for, tls_context, tls_for
from runtime.values.model import ModelRequest, Part

CONNECT_SECONDS, WRITE_SECONDS, POOL_SECONDS = 10.0, 60.0, 120.0

# Both would log addresses at INFO and headers, the key among them, at DEBUG.
for _name in ("httpx2", "httpcore2"):
    logging.getLogger(_name).setLevel(logging.WARNING)


def _transport(url: str) -> httpx2.AsyncBaseTransport:
    proxy, tls = proxy_for(url), tls_for(url)
    return KeepAliveTransport(tls) if proxy is None else ProxiedTransport(proxy, tls)


def warm() -> None:
    """Do once what the first provider would have to wait for. Blocks: meant for a thread."""
    with suppress(ConfigError):  # it is told by the provider that needs it
        tls_context()


def _new_call_id() -> str:
    return "call_" + secrets.token_hex(8)


def bearer(key: str) -> tuple[str, str]:
    """The header that most servers take a key in."""
    return "Authorization", f"Bearer {key}"


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one API makes of it all.

    body: a request's bytes. decoder: reads one answer, given the peer and what makes missing ids.
    key_header: the header, name and value, that carries a key. reader: how an answer is framed. hints: what
    a person can do about an error of that kind, a sentence each.
    """

    endpoint: Endpoint
    body: Callable[[ModelRequest], bytes]
    decoder: Callable[[Peer, Callable[[], str]], Decoder]
    key_header: Callable[[str], tuple[str, str]] = bearer
    reader: Callable[[Peer, Decoder], ReplyReader] = ReplyReader
    hints: Mapping[ProviderErrorKind, str] = field(default_factory=dict)


class HttpProvider:
    """A model behind an HTTP API. An adapter is this with its `dialect`.

    Its connections are kept alive between requests. transport and environ are given by tests and embedders.
    """

    def __init__(
        self,
        settings: ProviderSettings,
        *,
        transport: httpx2.AsyncBaseTransport | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.name = settings.name
        self._settings = settings
        self._dialect = self.dialect(settings)
        self._environ = environ
        endpoint = self._dialect.endpoint
        self._transport = transport or _transport(endpoint.url)
        self._url = httpx2.URL(endpoint.url)
        self._headers = {"Host": self._url.netloc.decode("ascii"), **endpoint.headers}
        limits = httpx2.Timeout(
            connect=CONNECT_SECONDS, read=endpoint.idle_seconds, write=WRITE_SECONDS, pool=POOL_SECONDS
        )
        self._extensions = {"timeout": limits.as_dict()}

    def dialect(self, settings: ProviderSettings) -> Dialect:
        """The adapter's API for these settings. Raises ConfigError."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Close pooled connections."""
        await self._transport.aclose()

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[Sequence[Part]]]:
        """Raises AuthRequired when the key's variable is not set."""
        peer = Peer(
            self.name,
            self._dialect.endpoint.host,
            request.model,
            self._settings.api_key_env,
            self._dialect.hints,
        )
        answer = await self._open(request, peer)
        try:
            async with aclosing(answer.batches()) as batches:
                yield batches
            await answer.linger()
        finally:
            await answer.release()

    def _key(self) -> dict[str, str]:
        variable = self._settings.api_key_env
        if not variable:
            return {}
        key = self._environ.get(variable, "").strip()
        if key and key.isascii() and key.isprintable():
            return dict([self._dialect.key_header(key)])
        wrong = "holds characters that no key has" if key else "is not set"
        raise AuthRequired(
            f'The provider "{self.name}" needs a key: the environment variable {variable} {wrong}. '
            "`wholeturn setup` asks for one and keeps it."
        )

    async def _open(self, request: ModelRequest, peer: Peer) -> Answer:
        """The answer, its first parts there."""
        response = await self._send(Body(self._dialect.body(request), request.ready, request.sent), peer)
        reader = self._dialect.reader(peer, self._dialect.decoder(peer, _new_call_id))
        answer = Answer(response, reader, peer)
        try:
            await answer.begin()
        except BaseException:
            await answer.release()
            raise
        return answer

    async def _send(self, body: Body, peer: Peer) -> httpx2.Response:
        headers = {**self._headers, **self._key(), "Content-Length": str(len(body.content))}
        request = httpx2.Request("POST", self._url, headers=headers, stream=body, extensions=self._extensions)
        try:
            response = await self._transport.handle_async_request(request)
        except (httpx2.HTTPError, OSError, UnicodeError) as error:
            raise broken(peer, error) from None
        if response.status_code == httpx2.codes.OK:
            return response
        text = await error_body(response)
        told = response.headers.get("retry-after"), response.headers.get("retry-after-ms")
        raise status_failure(peer, response.status_code, text, parse_retry_after(*told))
