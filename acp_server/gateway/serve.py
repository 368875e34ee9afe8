"""The gateway from its first socket to its last: every route behind the guard, the dashboard's files too.

Knows hypercorn. Its own `serve` keeps the sockets to itself, and a client that does not read then holds up
the end for ever; so the listening is done here, and each accepted socket is given to hypercorn's trio
server.
"""

import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, cast

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ASGIFramework, ConnectionState
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from acp_server.config.settings import GatewaySettings, Options
from acp_server.gateway.api import routes as api
from acp_server.gateway.clients import acp_websocket, event_streams
from acp_server.gateway.clients.other_processes import follow
from acp_server.gateway.feed.feed import Feed
from acp_server.gateway.guard import HEAD_BYTES, Guard, addresses_of
from acp_server.gateway.sessions.process_app import GatewayState, SharedApp
from acp_server.gateway.unread_requests import BROKEN, Draining, refused
from acp_server.wire.streams import watch_signals
from runtime.values.errors import ConfigError
from runtime.values.events import Event

if TYPE_CHECKING:
    from acp_server.gateway.sessions.process_app import GatewayState

FOLDER = Path(__file__).parent / "static"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
PAGE = "index.html"


def dashboard_routes(state: "GatewayState") -> list[BaseRoute]:
    """A route for each file: there is no path to anything else."""
    files = sorted(path for path in FOLDER.iterdir() if path.suffix in TYPES)
    return [Route("/" if path.name == PAGE else f"/static/{path.name}", serving(path)) for path in files]


def serving(path: Path) -> Callable[[Request], Awaitable[Response]]:
    """The handler of a file."""
    body, media_type = path.read_bytes(), TYPES[path.suffix]
    headers = {"etag": f'"{sha256(body).hexdigest()[:32]}"', "cache-control": "no-cache"}

    async def serve(request: Request) -> Response:
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        return Response(body, media_type=media_type, headers=headers)

    return serve


def build(state: GatewayState) -> ASGIApp:
    """The app. The dashboard comes last: it has what no other route takes."""
    parts = (acp_websocket.routes, event_streams.routes, api.routes, dashboard_routes)
    routes = [route for part in parts for route in part(state)]
    handlers = {HTTPException: refused, Exception: refused}
    app = Starlette(routes=routes, exception_handlers=handlers)
    # A path is one of ours or it is not; a redirect would repeat what was sent.
    app.router.redirect_slashes = False
    return Guard(app, state)


HEAD_SECONDS = 10
"""For a whole request head, from the beginning of a connection or the end of the last answer."""
PING_SECONDS = 20.0
"""From one ping of a WebSocket to the next: those between us and the client forget silent connections."""
FLUSH_SECONDS = 0.5
"""What is on its way when all ends gets so long; the sessions' own time comes before."""
BACKLOG = 128

log = logging.getLogger("wholeturn.gateway")

Ready = Callable[[Sequence[tuple[str, int]]], None]
"""Gets the addresses that are listened on, once they are."""


async def serve_gateway(
    options: Options, env: Mapping[str, str], settings: GatewaySettings, token: str, ready: Ready
) -> None:
    """Serve until a signal ends us. Raises ConfigError for an address or certificate that cannot be used."""
    context = _tls(settings)
    listeners = await _listen(settings)
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        state = make_state(options, env, settings, token, nursery)
        await nursery.start(watch_signals, stop.set)
        nursery.start_soon(follow, state)
        ready([listener.socket.getsockname()[:2] for listener in listeners])
        await serve_until(stop, state, listeners, context)
        nursery.cancel_scope.cancel()


def make_state(
    options: Options, env: Mapping[str, str], settings: GatewaySettings, token: str, nursery: trio.Nursery
) -> GatewayState:
    """All parts of a gateway, put together."""
    feed = Feed()
    publish = partial(_publish, feed)
    app = SharedApp(options, env, nursery, publish, settings.detached_turn_seconds)
    return GatewayState(app, app.hub, feed, settings, token, nursery)


def _publish(feed: Feed, session_id: str, event: Event, turn_id: str) -> None:
    feed.publish(session_id, event, turn_id=turn_id or None)


async def serve_until(
    stop: trio.Event,
    state: GatewayState,
    listeners: list[trio.SocketListener],
    context: ssl.SSLContext | None = None,
) -> None:
    """Serve until `stop` is set; then all turns are recorded and all sockets closed, within two seconds."""
    worker = WorkerContext(None)
    async with trio.open_nursery() as connections:
        app = ASGIWrapper(cast(ASGIFramework, Draining(build(state), connections)))
        handle = partial(_handle, state, app, _config(state.settings), worker, context)
        async with trio.open_nursery() as accepting:
            accepting.start_soon(
                partial(trio.serve_listeners, handle, listeners, handler_nursery=connections)
            )
            await stop.wait()
            accepting.cancel_scope.cancel()
        try:
            state.wires.abort_stuck()
            await state.app.aclose()
            state.hub.stop()
            state.feed.close()
            await worker.terminated.set()
            with trio.move_on_after(FLUSH_SECONDS):
                await state.wires.wait_for_none()
        finally:
            state.wires.abort_all()
            connections.cancel_scope.cancel()


async def _handle(
    state: GatewayState,
    app: ASGIWrapper,
    config: Config,
    worker: WorkerContext,
    context: ssl.SSLContext | None,
    stream: trio.SocketStream,
) -> None:
    """One connection. Whatever goes wrong in it is its own trouble."""
    if len(state.wires) >= state.settings.max_connections:
        if state.wires.crowded():
            log.warning("connections are refused: there are %s", state.settings.max_connections)
        await trio.aclose_forcefully(stream)
        return
    wire = state.wires.open(stream, context)
    try:
        with trio.CancelScope() as scope:
            wire.over = scope.cancel
            connection = ConnectionState({"cut": wire.abort, "begin": wire.begin, "end": wire.end})
            await TCPServer(app, config, worker, connection, wire)  # type: ignore[arg-type]
    except* BROKEN:
        log.info("a connection broke off")
    except* Exception:
        log.exception("a connection failed")
    finally:
        # It is closed by then, but for a handshake that came to nothing.
        wire.abort()


def _config(settings: GatewaySettings) -> Config:
    config = Config()
    config.accesslog, config.errorlog = None, log
    config.include_server_header = False
    config.keep_alive_timeout = HEAD_SECONDS
    config.ssl_handshake_timeout = HEAD_SECONDS
    config.h11_max_incomplete_size = HEAD_BYTES
    config.websocket_max_message_size = settings.max_message_bytes
    config.websocket_ping_interval = PING_SECONDS
    config.max_app_queue_size = 2
    return config


async def _listen(settings: GatewaySettings) -> list[trio.SocketListener]:
    found: list[trio.SocketListener] = []
    # Two addresses of one name would be given two ports.
    addresses = addresses_of(settings.host)[: None if settings.port else 1]
    try:
        for address in addresses:
            found += await trio.open_tcp_listeners(settings.port, host=address, backlog=BACKLOG)
    except OSError as error:
        for listener in found:
            await listener.aclose()
        what = f"{settings.host}:{settings.port}"
        raise ConfigError(f"gateway: {what} cannot be listened on: {error.strerror}") from error
    return found


def _tls(settings: GatewaySettings) -> ssl.SSLContext | None:
    if not settings.tls_cert:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        # Without a password OpenSSL would ask for one at the terminal, and nothing would be served.
        context.load_cert_chain(settings.tls_cert, settings.tls_key or None, password="")
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or "they do not fit together"
        raise ConfigError(f"gateway: the certificate or its key cannot be used: {reason}") from error
    return context
