"""An ASGI app behind hypercorn in this process, as the gateway serves it, and raw clients of it."""

import json
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress

import trio
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState
from hypercorn.utils import wrap_app
from starlette.types import ASGIApp

from acp_server.gateway.sockets import Wires

PATIENCE = 20.0
UPGRADE = (
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version: 13",
)


@asynccontextmanager
async def serving(app: ASGIApp) -> AsyncIterator[int]:
    """Serve on a port of this machine. All clients are closed behind it."""
    config = Config()
    config.accesslog = config.errorlog = None
    context, wires = WorkerContext(None), Wires()
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")

    async def serve(stream: trio.SocketStream) -> None:
        wire = wires.open(stream, None)
        state = ConnectionState({"cut": wire.abort})
        with suppress(OSError):
            await TCPServer(wrap_app(app, 1 << 20, "asgi"), config, context, state, wire)  # type: ignore[arg-type]

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, serve, listeners)
        try:
            yield listeners[0].socket.getsockname()[1]
        finally:
            wires.abort_all()
            nursery.cancel_scope.cancel()
            while CLIENTS:
                CLIENTS.pop().close()


CLIENTS: list[trio.socket.SocketType] = []
"""The sockets of the clients of one test."""


class Raw:
    """A client's connection, byte by byte. size: of the buffer that the system keeps for it."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.held = b""

    @classmethod
    async def open(cls, port: int, path: str, *headers: str, size: int = 0, method: str = "GET") -> "Raw":
        """Connect and ask."""
        made = trio.socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        CLIENTS.append(made)
        if size:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
        await made.connect(("127.0.0.1", port))
        raw = cls(trio.SocketStream(made))
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", *headers]
        await raw.stream.send_all("".join(f"{line}\r\n" for line in [*lines, ""]).encode())
        return raw

    async def until(self, end: bytes) -> bytes:
        """What comes up to and with `end`."""
        with trio.fail_after(PATIENCE):
            while end not in self.held:
                data = await self.stream.receive_some(1 << 16)
                if not data:
                    raise EOFError(self.held)
                self.held += data
        found, _, self.held = self.held.partition(end)
        return found + end

    async def head(self) -> str:
        """Status line and headers."""
        return (await self.until(b"\r\n\r\n")).decode()

    async def rest(self) -> bytes:
        """All that comes until the other side closes."""
        with trio.fail_after(PATIENCE):
            while data := await self.stream.receive_some(1 << 16):
                self.held += data
        return self.held

    async def frame(self) -> tuple[str, dict[str, object]]:
        """The next server-sent event: its id and its data. What HTTP puts between chunks is passed over."""
        while True:
            text = (await self.until(b"\n\n")).decode()
            lines = [line for line in text.splitlines() if ": " in line]
            fields = dict(line.split(": ", 1) for line in lines)
            if "data" in fields:
                return fields["id"], json.loads(fields["data"])

    async def message(self) -> tuple[int, bytes]:
        """The next WebSocket message of the server, which masks nothing: its opcode and payload."""
        first, length = await self.exactly(2)
        if length >= 126:
            length = int.from_bytes(await self.exactly(2 if length == 126 else 8), "big")
        return first & 15, await self.exactly(length)

    async def exactly(self, count: int) -> bytes:
        """So many bytes."""
        with trio.fail_after(PATIENCE):
            while len(self.held) < count:
                data = await self.stream.receive_some(1 << 16)
                if not data:
                    raise EOFError(self.held)
                self.held += data
        found, self.held = self.held[:count], self.held[count:]
        return found


def texts(frames: Iterable[dict[str, object]]) -> list[object]:
    """Frames by their text, else their type."""
    return [frame.get("text", frame["type"]) for frame in frames]
