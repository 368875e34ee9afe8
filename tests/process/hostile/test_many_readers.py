"""Ten thousand events for 250 subscribers of one gateway: nobody loses one, who is slow is cut alone.

The clients are bare sockets in one task each and look at nothing but the ids, so that the gateway is what is
measured.
"""

import contextlib
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import trio

from tests.conftest import ROOT
from tests.process.gateways import TOKEN_FILE, Gateway
from tests.process.homes import Home
from tests.support.processes import until

STREAMS, BATCHED, SINGLE = 200, 49, 1
"""Subscribers: streams, WebSockets that take many frames in a message, and such that take them one by one."""
EVENTS = 10_000
SIZE = 40
"""Characters in each."""
SECONDS = 150.0
"""For all of it, on a machine under load."""
GROWTH = 8 * 1024
"""KiB that the gateway may grow while half as many more are told."""
SSE_ID = re.compile(rb"\nid: ([0-9a-f]+)-(\d+)\n")
FRAME_ID = re.compile(rb'"event_id":"([0-9a-f]+)-(\d+)"')
UPGRADE = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
TAIL = 64
"""Bytes that an id may be cut apart in."""


class Subscriber:
    """One client; what it knows is the number of the last event, which must follow the one before."""

    def __init__(self, made: Gateway, path: str, ids: "re.Pattern[bytes]", head: str = "") -> None:
        self.last = 0
        self.gap = ""
        self.run_id = ""
        self._made = made
        self._path = path
        self._ids = ids
        self._head = head

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Read to the end of the connection."""
        with trio.socket.socket(socket.AF_INET, socket.SOCK_STREAM) as made:
            await self._open(made)
            task_status.started()
            held = b""
            while data := await made.recv(1 << 18):
                held += data
                end = 0
                for found in self._ids.finditer(held):
                    self._came(int(found[2]))
                    end = found.end() - 1
                    self.run_id = self.run_id or found[1].decode()
                held = held[max(end, len(held) - TAIL) :]

    async def _open(self, made: trio.socket.SocketType) -> None:
        await made.connect(("127.0.0.1", self._made.port))
        token = self._made.headers["Authorization"]
        lines = f"GET {self._path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {token}\r\n{self._head}\r\n"
        await made.send(lines.encode())
        said = await made.recv(1 << 16)
        assert said.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 101 ")), said

    def _came(self, number: int) -> None:
        if self.last and number != self.last + 1 and not self.gap:
            self.gap = f"{number} behind {self.last}"
        self.last = number


class Slow(Subscriber):
    """One that reads nothing behind the head until all is over. cut: the other side had closed by then."""

    def __init__(self, made: Gateway, path: str) -> None:
        super().__init__(made, path, SSE_ID)
        self.reading = trio.Event()
        self.cut = False

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Read late."""
        with trio.socket.socket(socket.AF_INET, socket.SOCK_STREAM) as made:
            # Small packets: then the system keeps little on the sending side, too.
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            await self._open(made)
            task_status.started()
            await self.reading.wait()
            with contextlib.suppress(OSError):
                while await made.recv(1 << 16):
                    pass
            self.cut = True


def subscribers(made: Gateway) -> list[Subscriber]:
    """All that must see everything."""
    streams = [Subscriber(made, "/api/events", SSE_ID) for _ in range(STREAMS)]
    batched = [Subscriber(made, "/api/events/ws?batch=true", FRAME_ID, UPGRADE) for _ in range(BATCHED)]
    return streams + batched + [Subscriber(made, "/api/events/ws", FRAME_ID, UPGRADE) for _ in range(SINGLE)]


def memory(process: trio.Process) -> int:
    """The resident memory of a process, KiB."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")))


async def test_many_subscribers_of_many_events(home: Home) -> None:
    with trio.fail_after(SECONDS):
        async with flooding(home) as (made, tell), trio.open_nursery() as nursery:
            everyone, slow = subscribers(made), Slow(made, "/api/events")
            for one in (*everyone, slow):
                await nursery.start(one.run)
            sizes = []
            for half in (1, 2, 3):
                await tell()
                await until(partial(all_at, everyone, half * EVENTS // 2))
                sizes.append(memory(made.process))
            assert {one.gap for one in everyone} == {""}
            # By then the ring is full, and all buffers have been as large as they get.
            assert sizes[2] - sizes[1] < GROWTH, sizes
            slow.reading.set()
            await until(lambda: slow.cut)
            await comes_back(made, everyone[0])
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def flooding(home: Home) -> AsyncIterator[tuple[Gateway, Callable[[], Awaitable[None]]]]:
    """A gateway that is told half of the events at each call."""
    numbers = map(str, (EVENTS // 2, SIZE, STREAMS + BATCHED + SINGLE))
    command = [sys.executable, "-m", "tests.process.flood", str(home.root), *numbers]
    async with trio.open_nursery() as nursery:
        process = await nursery.start(
            partial(
                trio.run_process,
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=ROOT,
                env=home.env,
            )
        )

        async def tell() -> None:
            await process.stdin.send_all(b"more\n")
            assert await line_of(process) == b"told"

        port = int(await line_of(process))
        yield Gateway(process, port, (home.root / TOKEN_FILE).read_text().strip()), tell
        await process.stdin.aclose()


def all_at(everyone: list[Subscriber], number: int) -> bool:
    """Whether all have come to this event."""
    return all(one.last == number for one in everyone)


async def line_of(process: trio.Process) -> bytes:
    """The next line that it prints."""
    assert process.stdout is not None
    said = b""
    while not said.endswith(b"\n"):
        data = await process.stdout.receive_some(1)
        assert data, said
        said += data
    return said.strip()


async def comes_back(made: Gateway, other: Subscriber) -> None:
    """Who was cut is told how much it lost, and gets all that is still there."""
    async with made.stream(f"?last_event_id={other.run_id}-1") as stream:
        await stream.until(lambda frame: frame.get("event_id") == f"{other.run_id}-{other.last}")
    lost, *rest = stream.frames[1:]
    assert (lost["type"], lost["lost"]) == ("events_lost", other.last - 1 - len(rest))
    assert len(rest) > 1000
