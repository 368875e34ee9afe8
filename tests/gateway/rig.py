"""A gateway in this process and its clients: ACP over WebSocket, every frame checked, and raw requests."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, open_websocket_url

from acp_server.config.settings import GatewaySettings, Options
from acp_server.gateway.clients.other_processes import follow
from acp_server.gateway.serve import make_state, serve_until
from acp_server.gateway.sessions.process_app import GatewayState
from tests.process.homes import Home
from tests.support.acp_schema import NonConformant
from tests.support.wire import PATIENCE, Agent, Answering, Ended, Handler, Inbox, encoded
from tests.support.wire_order import REPLAYED, Json, Order

TOKEN = "a-token-that-is-only-known-to-these-tests"


class SharedOrder(Order):
    """The rules for a client whose sessions others prompt as well: a turn may run that it has not begun."""

    def _update(self, session_id: str, update: Json) -> None:
        talked = self.session(session_id)
        talked.prompts.add("another client's")
        if update["sessionUpdate"] in REPLAYED and not talked.loads:
            assert talked.known
            return
        super()._update(session_id, update)


class _Received(trio.abc.ReceiveStream):
    """A WebSocket's messages as lines."""

    def __init__(self, socket: WebSocketConnection) -> None:
        self._socket = socket

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        try:
            message = await self._socket.get_message()
        except ConnectionClosed:
            return b""
        assert isinstance(message, str), "a frame is not text"
        assert "\n" not in message, "a frame holds more than one line"
        return message.encode() + b"\n"

    async def aclose(self) -> None:
        await self._socket.aclose()


class SocketAgent(Agent):
    """The agent at the other end of a WebSocket."""

    def __init__(self, socket: WebSocketConnection, inbox: Inbox) -> None:
        self.socket = socket
        self.inbox = inbox
        self.frames = inbox.frames
        self._counter = 100

    async def send(self, frame: Mapping[str, Any], *, valid: bool = True) -> None:
        """See Agent."""
        self.inbox.order.sent(frame)
        try:
            self.inbox.conformance.frame("client", frame)
        except NonConformant:
            assert not valid
        try:
            with trio.fail_after(PATIENCE):
                await self.socket.send_message(encoded(frame).decode())
        except ConnectionClosed as error:
            raise Ended("the socket is closed") from error

    async def ended(self) -> int:
        """Wait until the other side has closed; gives its code."""
        with trio.fail_after(PATIENCE):
            await self.inbox.ended.wait()
        self.inbox.check()
        assert self.socket.closed is not None
        return int(self.socket.closed.code)


@dataclass(frozen=True)
class Gateway:
    """A gateway that runs, for one test. stop: ends it. over: it has ended."""

    port: int
    state: GatewayState
    home: Home
    stop: trio.Event
    over: trio.Event

    @property
    def url(self) -> str:
        """Where its socket is."""
        return f"ws://127.0.0.1:{self.port}"

    @asynccontextmanager
    async def connect(
        self, handlers: Mapping[str, Handler] | None = None, *, shared: bool = False
    ) -> AsyncIterator[SocketAgent]:
        """A client of `/acp` that has not greeted yet. shared: others prompt its sessions as well."""
        async with connected(self.url, TOKEN, handlers, shared=shared) as agent:
            yield agent


@asynccontextmanager
async def socket_at(url: str, **more: Any) -> AsyncIterator[WebSocketConnection]:
    """A WebSocket; closed for good on leaving, also when the other side was first."""
    async with open_websocket_url(url, **more) as socket:
        try:
            yield socket
        finally:
            with trio.move_on_after(PATIENCE, shield=True):
                await socket.aclose()
            await trio.aclose_forcefully(socket._stream)


@asynccontextmanager
async def connected(
    url: str, token: str, handlers: Mapping[str, Handler] | None = None, *, shared: bool = False
) -> AsyncIterator[SocketAgent]:
    """A client of the gateway there."""
    headers = [(b"authorization", f"Bearer {token}".encode())]
    inbox = Inbox(trim_exception=True)
    if shared:
        inbox.order = SharedOrder()
    async with socket_at(f"{url}/acp", subprotocols=["acp"], extra_headers=headers) as socket:
        agent = SocketAgent(socket, inbox)
        async with trio.open_nursery() as nursery:
            answering = Answering(agent, handlers or {}, nursery)
            nursery.start_soon(inbox.read, _Received(socket), answering.called)
            yield agent
            inbox.check()
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def gateway(home: Home, **settings: Any) -> AsyncIterator[Gateway]:
    """Serve a user's machine; ended in good order on leaving, within two seconds."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    stop, over = trio.Event(), trio.Event()
    async with trio.open_nursery() as nursery:
        chosen = GatewaySettings(**{"requests_per_second": 1000, **settings})
        state = make_state(Options(), home.env, chosen, TOKEN, nursery)

        async def serve() -> None:
            await serve_until(stop, state, listeners)
            over.set()

        nursery.start_soon(follow, state)
        nursery.start_soon(serve)
        yield Gateway(listeners[0].socket.getsockname()[1], state, home, stop, over)
        stop.set()
        with trio.fail_after(PATIENCE):
            await over.wait()
        nursery.cancel_scope.cancel()


async def raw(port: int, data: bytes) -> bytes:
    """Send bytes and read until the other side closes."""
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    answer = b""
    with trio.fail_after(PATIENCE), suppress(trio.BrokenResourceError):
        async with stream:
            await stream.send_all(data)
            while piece := await stream.receive_some(1 << 16):
                answer += piece
    return answer


def head(*lines: str, host: str = "127.0.0.1", close: bool = True) -> bytes:
    """A request: its first line, then headers. host='' leaves that one out."""
    more = [f"Host: {host}"] if host else []
    more += ["Connection: close"] if close else []
    return "".join(f"{line}\r\n" for line in [*lines[:1], *more, *lines[1:], ""]).encode()


def status_of(answer: bytes) -> int:
    """The status of a response; 0 for none."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


def body_of(answer: bytes) -> Json:
    """The JSON of a response."""
    found: Json = json.loads(answer.partition(b"\r\n\r\n")[2])
    return found


def folder(home: Home, name: str) -> Path:
    """A folder to work in."""
    path = home.root / name
    path.mkdir(exist_ok=True)
    return path
