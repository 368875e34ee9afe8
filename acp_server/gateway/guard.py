"""The door of the gateway: who may come in, with what, from which address and how often. Knows no route.

Each rule looks at the request alone and gives None or the refusal; the first that refuses is the answer.
Nothing of a request's body is read, since no route takes one.
"""

import ipaddress
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

import trio
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from acp_server.gateway.sessions.process_app import GatewayState
from acp_server.gateway.token import is_same
from acp_server.gateway.unread_requests import answer_unread, refusal
from runtime.values.errors import ConfigError

BURST_SECONDS = 10
"""So many seconds' requests may come at once: a page loads all its parts together."""
MOST_ADDRESSES = 4096


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class Limits:
    """One bucket for each address; of very many, those that were not used for longest are forgotten."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._most = rate * BURST_SECONDS
        self._buckets: dict[str, _Bucket] = {}

    def take(self, address: str, now: float) -> float:
        """Count a request. 0 when it may go on, else the seconds until the next one may. now: seconds."""
        bucket = self._buckets.pop(address, None) or _Bucket(self._most, now)
        self._buckets[address] = bucket
        bucket.left = min(self._most, bucket.left + (now - bucket.at) * self._rate)
        bucket.at = now
        if len(self._buckets) > MOST_ADDRESSES:
            del self._buckets[next(iter(self._buckets))]
        if bucket.left < 1:
            return (1 - bucket.left) / self._rate
        bucket.left -= 1
        return 0.0


LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

_PLACE = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::(?P<port>[0-9]{1,5}))?")


class Place(NamedTuple):
    """A host, in lower case and without brackets, and a port; None where none is written."""

    host: str
    port: int | None = None


def place_of(text: str) -> Place | None:
    """`host`, `host:port`, `[address]` or `[address]:port`; None for anything else."""
    found = _PLACE.fullmatch(text.lower())
    if found is None:
        return None
    host, port = found["address"] or found["name"].rstrip("."), found["port"]
    return Place(host, int(port) if port else None)


def is_loopback(host: str) -> bool:
    """Whether nobody outside of this machine can reach it. A name counts by all that it stands for.

    Raises ConfigError for a name that stands for nothing.
    """
    return all(ipaddress.ip_address(address).is_loopback for address in addresses_of(host))


def addresses_of(host: str) -> list[str]:
    """The addresses behind a name, IPv4 first; an address is its own. Raises ConfigError."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"gateway: {host[:200]!r} is no address of this machine") from error
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    return list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found))


HEAD_BYTES = 16 * 1024
BEARER = "bearer."
"""A WebSocket's subprotocol that is the token: browsers cannot set its headers."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_WAYS_OUT = re.compile(rb"(?:^|/)\.{1,2}(?:/|$)|\\|\x00|//")
_HELD = re.compile(r"^/(?:api|acp)(?:/|$)")


@dataclass(frozen=True, slots=True)
class Visit:
    """A request, as far as the rules look at it. local: the address at which it came in."""

    scope: Scope
    headers: Headers
    address: str
    local: str

    @property
    def offered(self) -> list[str]:
        """The subprotocols of a WebSocket."""
        return list(self.scope.get("subprotocols", ()))

    @property
    def held(self) -> bool:
        """Whether only those with the token may have it: all but the files of the dashboard."""
        return self.scope["type"] == "websocket" or bool(_HELD.match(self.scope["path"]))


Rule = Callable[[Visit], Response | None]


class Guard:
    """ASGI around the routes."""

    def __init__(self, app: ASGIApp, state: GatewayState) -> None:
        self._app = app
        self._token = state.token
        self._limits = Limits(state.settings.requests_per_second)
        self._hosts = LOCAL_NAMES | {host.lower() for host in state.settings.allowed_hosts}
        self._origins = frozenset(origin.lower() for origin in state.settings.allowed_origins)
        self._rules: tuple[Rule, ...] = (
            self._rate, _version, _size, _path, self._host, self._origin, _body, self._bearer
        )  # fmt: skip

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request in, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            return
        visit = _visit(scope)
        no = next((no for rule in self._rules if (no := rule(visit)) is not None), None)
        scope["subprotocols"] = [one for one in visit.offered if not one.startswith(BEARER)]
        dressed = _dressed(send, held=visit.held or no is not None)
        if no is None:
            await self._app(scope, receive, dressed)
        elif scope["type"] == "websocket":
            await no(scope, receive, dressed)
        else:
            await answer_unread(no, scope, receive, dressed)

    def _rate(self, visit: Visit) -> Response | None:
        wait = self._limits.take(visit.address, trio.current_time())
        if not wait:
            return None
        return refusal(429, "Too many requests.", {"retry-after": str(int(wait) + 1)})

    def _host(self, visit: Visit) -> Response | None:
        """A page of another site may have its name lead here: the browser then sends that name."""
        hosts = visit.headers.getlist("host")
        place = place_of(hosts[0]) if len(hosts) == 1 else None
        if place is None:
            return refusal(400, "There must be one Host header that names a host.")
        if place.host in self._hosts or place.host == visit.local:
            return None
        return refusal(421, "This host is not served here; [gateway] allowed_hosts can name it.")

    def _origin(self, visit: Visit) -> Response | None:
        """Only our own page may ask from inside a browser, and those that the settings name."""
        origins = visit.headers.getlist("origin")
        own = f"{_web(visit.scope)}://{visit.headers.get('host', '')}".lower()
        if all(origin.lower() in self._origins or origin.lower() == own for origin in origins):
            return None
        return refusal(403, "This origin is not allowed; [gateway] allowed_origins can name it.")

    def _bearer(self, visit: Visit) -> Response | None:
        """All that is shown must be right: one request is one guess, whatever stands in it how often."""
        shown = _tokens(visit)
        if not visit.held or (shown and all(is_same(given, self._token) for given in shown)):
            return None
        return refusal(401, "The token is missing or wrong.", {"www-authenticate": "Bearer"})


def _visit(scope: Scope) -> Visit:
    client, server = scope.get("client"), scope.get("server")
    address, local = (str(one[0]) if one else "" for one in (client, server))
    return Visit(scope, Headers(scope=scope), address, local)


def _version(visit: Visit) -> Response | None:
    if visit.scope["http_version"] in ("1.0", "1.1"):
        return None
    return refusal(505, "HTTP/1.1 is spoken here.")


def _size(visit: Visit) -> Response | None:
    """The server's own bound is for heads that are not complete yet."""
    head = sum(len(name) + len(value) for name, value in visit.headers.raw)
    target = len(visit.scope.get("raw_path") or b"") + len(visit.scope["query_string"])
    return refusal(431, "The head of the request is too large.") if head + target > HEAD_BYTES else None


def _path(visit: Visit) -> Response | None:
    """A path says where it leads: no way up, no hidden separator, no other server's address."""
    raw = bytes(visit.scope.get("raw_path") or visit.scope["path"].encode())
    decoded = unquote_to_bytes(raw)
    hidden = decoded.count(b"/") != raw.count(b"/")
    if not raw.startswith(b"/") or hidden or _WAYS_OUT.search(decoded):
        return refusal(400, "The path is not one of ours.")
    return None


def _body(visit: Visit) -> Response | None:
    lengths = visit.headers.getlist("content-length")
    if "transfer-encoding" not in visit.headers and all(length.strip() == "0" for length in lengths):
        return None
    return refusal(413, "No request takes a body here.", {"connection": "close"})


def _tokens(visit: Visit) -> list[str]:
    """All that is shown as the token."""
    given = [one.removeprefix(BEARER) for one in visit.offered if one.startswith(BEARER)]
    for value in visit.headers.getlist("authorization"):
        scheme, _, rest = value.partition(" ")
        if scheme.lower() == "bearer":
            given.append(rest.strip())
    return given


def _web(scope: Scope) -> str:
    return "https" if scope["scheme"] in ("https", "wss") else "http"


def _dressed(send: Send, *, held: bool) -> Send:
    """`send` that puts the headers on every answer."""

    async def dressed(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            if held:
                headers["cache-control"] = "no-store"
        await send(message)

    return dressed
