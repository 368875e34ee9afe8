"""One HTTP answer while it is read: batches of parts, until its end or its failure. Knows no API."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import suppress
from typing import cast

import httpx2
import trio

from runtime.providers.errors.failures import Peer, failure
from runtime.providers.http.event_stream import ReplyReader
from runtime.values.errors import ProviderError, ProviderErrorKind
from runtime.values.http_environment import ProxyFault, trust_hint
from runtime.values.model import Part

ERROR_BODY_SECONDS, ERROR_BODY_BYTES = 15.0, 64 * 1024
END_SECONDS = 5.0
"""How long figures may trail a complete answer before it is taken as it is."""
LINGER_SECONDS = 0.25
"""How long a complete answer may take to end its body before its connection is given up."""


class Answer:
    """One answer with status 200 while it is read."""

    def __init__(self, response: httpx2.Response, reader: ReplyReader, peer: Peer) -> None:
        self._response = response
        self._reader = reader
        self._chunks = _body(response)
        self._parts = _parts(reader, self._chunks, peer)
        self._first: Sequence[Part] = ()
        self._ended = False

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
            # A server that hangs up behind its last word has said all of it.
            with trio.move_on_after(LINGER_SECONDS), suppress(httpx2.HTTPError, OSError):
                self._ended = await anext(self._chunks, None) is None

    async def release(self) -> None:
        """Close at once what was not read to its end."""
        with trio.CancelScope(shield=True):
            await self._parts.aclose()
            await self._response.aclose()
            if not self._ended:
                await _finish(self._chunks)


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
        raise broken(peer, error, while_reading=True) from None


def _body(response: httpx2.Response) -> AsyncIterator[bytes]:
    plain = response.headers.get("content-encoding", "identity") == "identity"
    return aiter(cast("httpx2.AsyncByteStream", response.stream)) if plain else response.aiter_bytes()


async def error_body(response: httpx2.Response) -> bytes:
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


async def _finish(chunks: AsyncIterator[bytes]) -> None:
    """End the body of a response that was closed.

    It is a chain of async generators. One left half-way is finished by the garbage collector, noisily; with
    the connection closed this finishes all of them here.
    """
    try:
        async for _ in chunks:
            pass
    except (httpx2.HTTPError, httpx2.StreamError, OSError):
        return


def broken(peer: Peer, error: Exception, *, while_reading: bool = False) -> ProviderError:
    """The error for an exchange that the HTTP client gave up."""
    kind, sentence = next((kind, text) for types, kind, text in _BROKEN if isinstance(error, types))
    if while_reading and kind is ProviderErrorKind.TIMEOUT:
        sentence = "stopped in the middle of its answer"
    if isinstance(error, ProxyFault):
        sentence = f"cannot be reached through the proxy that {error.named_by} names"
    if any("CERTIFICATE_VERIFY_FAILED" in str(cause) for cause in _causes(error)):
        sentence = f"showed a TLS certificate that this machine does not trust{trust_hint()}"
    return failure(peer, kind, sentence=sentence)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what it came from: on the way here the words of the first one are lost."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


_BROKEN: tuple[tuple[type[Exception] | tuple[type[Exception], ...], ProviderErrorKind, str], ...] = (
    (httpx2.ProxyError, ProviderErrorKind.UNREACHABLE, "cannot be reached through the configured proxy"),
    (
        (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout),
        ProviderErrorKind.UNREACHABLE,
        "cannot be reached; check that the server is running and that base_url is right",
    ),
    (httpx2.TimeoutException, ProviderErrorKind.TIMEOUT, ""),
    (
        (httpx2.LocalProtocolError, httpx2.UnsupportedProtocol, UnicodeError),
        ProviderErrorKind.BAD_REQUEST,
        "was not asked: a configured header or address cannot be sent",
    ),
    (httpx2.DecodingError, ProviderErrorKind.MALFORMED, ""),
    (Exception, ProviderErrorKind.STREAM_DROPPED, ""),
)
"""The first row that fits; an empty sentence leaves it to the kind's own."""
