"""One page of the web, bounded, from an address that was checked before the connection was made to it.

A name is resolved once and the connection goes to what came of it, so that a second answer of the name server
cannot lead elsewhere; addresses of this machine and its network are told from public ones. No proxy, no
cookies, no credentials. Imports the HTTP client: load it late. Knows no tool.
"""

import ssl
import zlib
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from email.message import Message
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import httpcore2
import httpx2
import trio

from runtime.tools.sandbox.paths import shorten
from runtime.values.errors import ConfigError, ToolError
from runtime.values.http_environment import tls_context

_NAT64 = ip_network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Whether it is an address of the public internet. What is no address is not."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    inner = _inner(found)
    if inner is not None:
        return is_public(str(inner))
    if isinstance(found, IPv6Address) and found.is_site_local:
        return False
    return found.is_global and not (found.is_multicast or found.is_reserved or found.is_unspecified)


def _inner(address: IPv4Address | IPv6Address) -> IPv4Address | None:
    """The address of the older kind that one of the newer kind leads to."""
    if isinstance(address, IPv4Address):
        return None
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    if address.teredo is not None:
        return address.teredo[1]
    return address.ipv4_mapped or address.sixtofour


MAX_BYTES = 5 * 1024 * 1024
_REDIRECTS = 5
_MOVED = (301, 302, 303, 307, 308)
_HEADERS = (
    (b"User-Agent", b"wholeturn"),
    (b"Accept", b"text/html, text/plain, text/markdown, application/json, */*;q=0.5"),
    (b"Accept-Encoding", b"gzip"),
)

Resolve = Callable[[str, int], Awaitable[list[str]]]


@dataclass(frozen=True, slots=True)
class Page:
    """What came. address: after redirects. moved: where it leads when that is another host, '' if not."""

    address: str
    status: int
    kind: str = ""
    charset: str = ""
    body: bytes = b""
    complete: bool = True
    moved: str = ""


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a name, by the system."""
    found = await trio.socket.getaddrinfo(host, port, type=trio.socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class CheckedBackend(httpcore2.AsyncNetworkBackend):
    """Connections to addresses that may be reached. private: all of them may."""

    def __init__(
        self, *, private: bool, resolve: Resolve = resolve, inner: httpcore2.AsyncNetworkBackend | None = None
    ) -> None:
        self._private = private
        self._resolve = resolve
        self._inner = inner or httpcore2.TrioBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """To the first address that answers. Raises ToolError when any of them may not be reached."""
        addresses = await self._addresses(host, port)
        for address in addresses[:-1]:
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return await self._inner.connect_tcp(addresses[-1], port, timeout, local_address, socket_options)

    async def sleep(self, seconds: float) -> None:
        """As trio's own."""
        await trio.sleep(seconds)

    async def _addresses(self, host: str, port: int) -> list[str]:
        try:
            found = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            # A name of more or fewer letters than names may have is an error of its encoding.
            why = error.strerror if isinstance(error, OSError) else "no name can be so"
            raise ToolError(f"{shorten(host)} cannot be found ({why or error})") from error
        for address in found:
            if not self._private and not is_public(address):
                raise ToolError(f"{shorten(host)} leads to {address}, which is no address of the public web")
        if not found:
            raise ToolError(f"{shorten(host)} has no address")
        return found


async def fetch(address: str, backend: httpcore2.AsyncNetworkBackend) -> Page:
    """The page, redirects within its host followed. Raises ToolError."""
    async with httpcore2.AsyncConnectionPool(ssl_context=_tls(), network_backend=backend) as pool:
        here = checked(address)
        for _ in range(_REDIRECTS):
            page = await _one(pool, here)
            if not page.moved:
                return page
            there = checked(page.moved)
            if _site(there) != _site(here):
                return page
            here = there
    raise ToolError(f"{shorten(address)} leads from one address to the next without end")


def checked(address: str) -> httpx2.URL:
    """The address, fit to be asked. Raises ToolError."""
    try:
        url = httpx2.URL(address)
    except (httpx2.InvalidURL, ValueError):
        raise ToolError(f"not an address: {shorten(address)}") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise ToolError(f"only http:// and https:// addresses can be fetched, not {shorten(address)}")
    if url.userinfo:
        raise ToolError("an address with a user name or password in it is not fetched")
    return url


async def _one(pool: httpcore2.AsyncConnectionPool, url: httpx2.URL) -> Page:
    target = httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
    headers = [(b"Host", url.netloc), *_HEADERS]
    try:
        async with pool.stream("GET", target, headers=headers) as response:
            found = {name.lower(): value.decode("latin-1") for name, value in response.headers}
            if response.status in _MOVED and b"location" in found:
                return Page(str(url), response.status, moved=str(url.join(found[b"location"])))
            body, complete = await _body(response, found.get(b"content-encoding", ""))
    except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException) as error:
        raise ToolError(
            f"{shorten(str(url))} could not be fetched: {shorten(str(error) or 'no answer')}"
        ) from error
    except (httpx2.InvalidURL, zlib.error) as error:
        raise ToolError(f"{shorten(str(url))} gave an answer that cannot be read") from error
    media = Message()
    media["content-type"] = found.get(b"content-type", "")
    charset = media.get_content_charset("")
    return Page(str(url), response.status, media.get_content_type(), charset, body, complete)


async def _body(response: httpcore2.Response, encoding: str) -> tuple[bytes, bool]:
    """At most MAX_BYTES of it, unpacked; whether that is all."""
    packed = encoding.strip().lower()
    if packed not in ("", "identity", "gzip", "x-gzip"):
        raise ToolError(f"the page is packed in a way that is not known ({shorten(packed, 40)})")
    unpack = zlib.decompressobj(wbits=31) if "gzip" in packed else None
    body = bytearray()
    async with aclosing(response.aiter_stream()) as chunks:
        async for chunk in chunks:
            room = MAX_BYTES + 1 - len(body)
            body += unpack.decompress(chunk, room) if unpack else chunk[:room]
            if len(body) > MAX_BYTES:
                return bytes(body[:MAX_BYTES]), False
    return bytes(body), True


def _site(url: httpx2.URL) -> tuple[str, int | None]:
    # https://www.x and http://x are one site; another port is another server.
    return url.host.lower().removeprefix("www."), url.port


def _tls() -> ssl.SSLContext:
    try:
        return tls_context()
    except ConfigError as error:
        raise ToolError(error.message) from error
