"""What the environment says of HTTP: proxies and certificates, read with care. Knows no server and no API.

A setting that cannot be used is a sentence that names its variable and what to do, and it stops only those
whom it concerns: a proxy for another scheme, or one that `NO_PROXY` takes out, is not looked at.
"""

import importlib.util
import os
import ssl
import urllib.request
from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx2

from runtime.values.errors import ConfigError

SOCKS = ("socks5", "socks5h")
SCHEMES = ("http", "https", *SOCKS)
_SHOWN = 200


class Proxy(NamedTuple):
    """A proxy and where it is named: a variable, or words for the settings of the system."""

    named_by: str
    address: str


class ProxyFault(httpx2.ProxyError):
    """The proxy could not be reached, or refused. named_by: what names it."""

    def __init__(self, named_by: str) -> None:
        super().__init__(f"the proxy that {named_by} names")
        self.named_by = named_by


class ProxiedTransport(httpx2.AsyncBaseTransport):
    """The HTTP client's own transport through a proxy, whose faults tell what named it."""

    def __init__(self, proxy: Proxy, tls: ssl.SSLContext) -> None:
        self._named_by = proxy.named_by
        self._inner = httpx2.AsyncHTTPTransport(verify=tls, trust_env=False, proxy=_proxy_of(proxy, tls))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """See `httpx2`. Raises ProxyFault for what the proxy did."""
        try:
            return await self._inner.handle_async_request(request)
        except (httpx2.ProxyError, httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise ProxyFault(self._named_by) from error

    async def aclose(self) -> None:
        """Close its connections."""
        await self._inner.aclose()


def transport(url: str) -> httpx2.AsyncBaseTransport:
    """The HTTP client's transport to that address. Raises ConfigError."""
    proxy = proxy_for(url)
    if proxy is not None:
        return ProxiedTransport(proxy, tls_for(url))
    return httpx2.AsyncHTTPTransport(verify=tls_for(url), trust_env=False)


def proxy_for(url: str) -> Proxy | None:
    """The proxy that stands between us and that address; None for none. Raises ConfigError."""
    target = urlsplit(url)
    proxies = urllib.request.getproxies()
    key = next((key for key in (target.scheme, "all") if proxies.get(key)), None)
    if key is None or urllib.request.proxy_bypass(target.netloc.rpartition("@")[2]):
        return None
    address = proxies[key]
    proxy = Proxy(_named_by(key), address if "://" in address else f"http://{address}")
    _require_usable(proxy)
    return proxy


def _named_by(key: str) -> str:
    names = (f"{key}_proxy", f"{key.upper()}_PROXY")
    given = next((name for name in names if os.environ.get(name)), None)
    return f"the environment variable {given}" if given else "the proxy setting of this system"


def _require_usable(proxy: Proxy) -> None:
    try:
        parts = urlsplit(proxy.address)
        scheme, host, port = parts.scheme.lower(), parts.hostname, parts.port
        httpx2.URL(proxy.address)
    except (ValueError, httpx2.InvalidURL):
        scheme, host, port = "", None, None
    where = proxy.named_by
    if host and scheme and scheme not in SCHEMES:
        raise ConfigError(
            f"{_begun(where)} names a proxy of a kind that is not known ({scheme[:20]}://): name an http:// "
            "or socks5:// proxy, unset it, or set NO_PROXY to the hosts that need none."
        )
    if not host or port == 0:
        raise ConfigError(
            f"{_begun(where)} names a proxy that cannot be read: write it as http://HOST:PORT, or unset it."
        )
    if scheme in SOCKS and importlib.util.find_spec("socksio") is None:
        raise ConfigError(
            f"{_begun(where)} names a SOCKS proxy, for which the package socksio is missing: install it "
            "beside Wholeturn (`pip install socksio`), name an http:// proxy, unset it, or set NO_PROXY to "
            "the hosts that need none."
        )


def _begun(where: str) -> str:
    return where[0].upper() + where[1:]


def _proxy_of(proxy: Proxy, tls: ssl.SSLContext) -> httpx2.Proxy:
    secure = urlsplit(proxy.address).scheme.lower() == "https"
    try:
        return httpx2.Proxy(proxy.address, ssl_context=tls if secure else None)
    except (ValueError, httpx2.InvalidURL) as error:
        raise ConfigError(f"{_begun(proxy.named_by)} names a proxy that cannot be used; unset it.") from error


def tls_for(url: str) -> ssl.SSLContext:
    """What connections to that address are encrypted with. Raises ConfigError, for https alone."""
    secure = urlsplit(url).scheme == "https"
    # Where nothing is encrypted nothing has to be loaded, and what is wrong with it concerns nobody.
    return tls_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@cache
def tls_context() -> ssl.SSLContext:
    """The certificates that are trusted. Loading them takes 30 ms and more: once for all.

    Raises ConfigError that names the variable which cannot be used.
    """
    _require_certificates(os.environ)
    try:
        return httpx2.create_ssl_context()
    except (OSError, ValueError) as error:
        raise ConfigError(f"TLS cannot be set up on this machine: {_reason(error)}.") from error


def _require_certificates(environ: Mapping[str, str]) -> None:
    for name, (check, wanted) in _TLS_VARIABLES.items():
        value = environ.get(name)
        if not value or (name == "SSL_CERT_DIR" and environ.get("SSL_CERT_FILE")):
            continue
        try:
            check(value)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"The environment variable {name} names {value[:_SHOWN]!r}, which cannot be used "
                f"({_reason(error)}): name {wanted}, or unset it."
            ) from error


def _certificates_in(path: str) -> None:
    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=path)


def _keys_to(path: str) -> None:
    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).keylog_filename = path


_TLS_VARIABLES: Mapping[str, tuple[Callable[[str], object], str]] = {
    "SSL_CERT_FILE": (_certificates_in, "a file of certificates (PEM)"),
    "SSL_CERT_DIR": (os.listdir, "a folder of certificates"),
    "SSLKEYLOGFILE": (_keys_to, "a file that can be written"),
}
"""Variables that TLS is set up by: how one is tried, and what it has to name."""


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return "it holds no certificate that can be read"
    return (error.strerror if isinstance(error, OSError) else None) or "it is not valid"


def trust_hint() -> str:
    """What says which certificates are trusted where it is not this machine, for a sentence; '' for none."""
    name = next((name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name)), "")
    return f"; {name} says which ones it trusts" if name else ""
