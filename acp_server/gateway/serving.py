"""The gateway from its first socket to its last: listens, serves, and ends in good order.

Knows hypercorn. Its own `serve` keeps the sockets to itself, and a client that does not read then holds up
the end for ever; so the listening is done here, and each accepted socket is given to hypercorn's trio server.
"""

import logging
import ssl
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import cast

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ASGIFramework, ConnectionState

from acp_server.config.options import Options
from acp_server.config.settings import GatewaySettings
from acp_server.gateway.addresses import addresses_of
from acp_server.gateway.app import build
from acp_server.gateway.draining import BROKEN, Draining
from acp_server.gateway.feed import Feed
from acp_server.gateway.following import follow
from acp_server.gateway.guard import HEAD_BYTES
from acp_server.gateway.shared import SharedApp
from acp_server.gateway.state import GatewayState
from acp_server.signals import watch_signals
from runtime.errors import ConfigError
from runtime.events import Event

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
    """Serve until SIGINT or SIGTERM. Raises ConfigError for an address or certificate that cannot be used."""
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
