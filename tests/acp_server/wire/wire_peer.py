"""The client's side of a connection in memory, and the smallest app behind it, for tests of the transport."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import trio
from trio.testing import memory_stream_pair

from acp_server.acp.capabilities import initialize_result
from acp_server.wire.connection import Connection
from acp_server.wire.dispatch import Answer, Handler
from acp_server.wire.framing import LineSplitter
from acp_server.wire.stdio import Hello

HELLO = {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {"protocolVersion": 1}}
Json: TypeAlias = dict[str, object]


@dataclass
class SmallApp:
    """Remembers what the connection tells it; `gate` and `log` are for the handlers of a test."""

    greeted: list[Mapping[str, object]] = field(default_factory=list)
    sessions: bool = False
    closed: int = 0
    log: list[object] = field(default_factory=list)
    gate: trio.Event = field(default_factory=trio.Event)

    def initialized(self, params: Mapping[str, object]) -> None:
        self.greeted.append(params)

    def has_sessions(self) -> bool:
        return self.sessions

    async def aclose(self) -> None:
        self.closed += 1
        await trio.lowlevel.checkpoint()


Methods: TypeAlias = dict[str, Handler[SmallApp]]


def _initialize(app: SmallApp, params: Mapping[str, object]) -> Answer:
    return Answer(initialize_result(params))


def _ping(app: SmallApp, params: Mapping[str, object]) -> Answer:
    return Answer({"pong": True})


BASIC: Methods = {"initialize": _initialize, "ping": _ping}


class Peer:
    """Sends lines, reads lines; every wait is bounded."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self._splitter = LineSplitter()
        self._lines: list[bytes] = []
        self._pings = 0

    async def send(self, *messages: object) -> None:
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            await self.stream.send_all(line)

    async def line(self) -> bytes:
        with trio.fail_after(10):
            while not self._lines:
                data = await self.stream.receive_some(65536)
                if not data:
                    raise EOFError
                self._lines += [line for line in self._splitter.feed(data) if isinstance(line, bytes)]
        return self._lines.pop(0)

    async def read(self) -> Json:
        message = json.loads(await self.line())
        assert isinstance(message, dict)
        return message

    async def answers_to(self, *messages: object) -> list[Json]:
        """All that comes back for these, up to the answer of a ping sent after them."""
        self._pings += 1
        mark = f"ping-{self._pings}"
        await self.send(*messages, {"jsonrpc": "2.0", "id": mark, "method": "ping"})
        got: list[Json] = []
        while not got or got[-1].get("id") != mark:
            got.append(await self.read())
        return got[:-1]

    async def hello(self) -> Json:
        await self.send(HELLO)
        return await self.read()


@dataclass
class Talk:
    """A served connection and its client. done: `serve` has returned. methods: its table, may be added to."""

    peer: Peer
    connection: Connection[SmallApp]
    app: SmallApp
    done: trio.Event
    methods: Methods


@asynccontextmanager
async def talk(
    methods: Methods | None = None, *, greet: bool = True, first: Hello | None = None
) -> AsyncIterator[Talk]:
    """A served connection in memory; ended by EOF on leaving, which must work."""
    ours, theirs = memory_stream_pair()
    app = SmallApp()
    table = BASIC | (methods or {})
    connection = Connection(ours, table, app, hello=first)
    it = Talk(Peer(theirs), connection, app, trio.Event(), table)

    async def serve() -> None:
        await connection.serve()
        it.done.set()

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            if greet:
                await it.peer.hello()
            yield it
            if theirs.send_stream is not None:
                await theirs.send_stream.aclose()
            await it.done.wait()
