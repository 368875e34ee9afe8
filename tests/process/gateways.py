"""A gateway process of a test, and clients of it: events as a stream, events and ACP over WebSocket."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, open_websocket

from tests.process.homes import Home
from tests.support.processes import PATIENCE as SHORT
from tests.support.wire import PATIENCE
from tests.support.wire_order import Json

TOKEN_FILE = "gateway.token"


class Gateway:
    """Where it is, and what it is entered with."""

    def __init__(self, process: trio.Process, port: int, token: str) -> None:
        self.process = process
        self.port = port
        self.headers = {"Authorization": f"Bearer {token}"}

    @asynccontextmanager
    async def stream(self, query: str = "") -> AsyncIterator["Seen"]:
        """A subscriber of the events as a stream; what it has seen."""
        url = f"http://127.0.0.1:{self.port}/api/events{query}"
        async with (
            httpx2.AsyncClient(headers=self.headers, timeout=None) as client,
            client.stream("GET", url) as answer,
            trio.open_nursery() as nursery,
        ):
            assert answer.status_code == 200
            seen = Seen()
            nursery.start_soon(_read_stream, answer, seen)
            await seen.until(lambda frame: frame["type"] == "begun")
            yield seen
            nursery.cancel_scope.cancel()

    @asynccontextmanager
    async def socket(self, path: str, subprotocol: str) -> AsyncIterator["Socket"]:
        """A WebSocket; what came over it."""
        headers = [(name.encode(), value.encode()) for name, value in self.headers.items()]
        async with open_websocket(
            "127.0.0.1", self.port, path, use_ssl=False, subprotocols=[subprotocol], extra_headers=headers
        ) as connection:
            assert connection.subprotocol == subprotocol
            async with trio.open_nursery() as nursery:
                socket = Socket(connection)
                nursery.start_soon(socket.read)
                yield socket
                nursery.cancel_scope.cancel()


class Seen:
    """Frames in the order in which they came."""

    def __init__(self) -> None:
        self.frames: list[Json] = []
        self._news = trio.lowlevel.ParkingLot()

    def add(self, frame: Json) -> None:
        """It came."""
        self.frames.append(frame)
        self._news.unpark_all()

    async def until(self, wanted: Callable[[Json], object], since: int = 0) -> Json:
        """The first frame that fits, of those from number `since` on."""
        with trio.fail_after(PATIENCE):
            while True:
                for frame in self.frames[since:]:
                    if wanted(frame):
                        return frame
                since = len(self.frames)
                await self._news.park()


class Socket(Seen):
    """Over a WebSocket. As an ACP client it asks, too."""

    def __init__(self, connection: WebSocketConnection) -> None:
        super().__init__()
        self._connection = connection
        self._counter = 0

    async def read(self) -> None:
        """Take in messages to the end."""
        try:
            while True:
                self.add(json.loads(await self._connection.get_message()))
        except ConnectionClosed:
            return

    async def call(self, method: str, params: Json) -> Json:
        """Send a request; its result."""
        self._counter += 1
        number = self._counter
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        await self._connection.send_message(json.dumps(request))
        frame = await self.until(lambda frame: "method" not in frame and frame.get("id") == number)
        assert "result" in frame, frame
        result: Json = frame["result"]
        return result


async def _read_stream(answer: httpx2.Response, seen: Seen) -> None:
    last = ""
    async for line in answer.aiter_lines():
        name, _, value = line.partition(": ")
        if name == "retry":
            seen.add({"type": "begun"})
        elif name == "id":
            last = value
        elif name == "data":
            frame = json.loads(value)
            assert frame["event_id"] == last
            seen.add(frame)


@asynccontextmanager
async def gateway(home: Home, *arguments: str) -> AsyncIterator[Gateway]:
    """Start one on a free port; on leaving, end it as a person does."""
    command = [sys.executable, "-m", "acp_server", "gateway", "--port", "0", *arguments]
    with home.log.open("ab") as log:
        process = await trio.lowlevel.open_process(
            command, cwd=home.work, env=home.env, stdout=subprocess.PIPE, stderr=log
        )
    try:
        yield Gateway(process, await _port(process), (home.data / TOKEN_FILE).read_text().strip())
        process.terminate()
        with trio.fail_after(SHORT):
            assert await process.wait() == 0, home.log.read_text()
        assert "Traceback" not in home.log.read_text()
    finally:
        with trio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.wait()
            if process.stdout is not None:
                await process.stdout.aclose()


async def _port(process: trio.Process) -> int:
    assert process.stdout is not None  # piped above
    said = b""
    with trio.fail_after(PATIENCE):
        while said.count(b"\n") < 2:
            data = await process.stdout.receive_some()
            assert data, said
            said += data
    return int(said.split(b"\n")[0].rstrip(b"/").rpartition(b":")[2])


def in_folder(path: Path) -> Json:
    """The parameters that name a session's folder."""
    return {"cwd": str(path), "mcpServers": []}
