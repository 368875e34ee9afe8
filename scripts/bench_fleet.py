"""What a session and a turn cost on a PostgreSQL server: time, disk, log, connections.

The server is our own, made for the run with durable commits; where there is no PostgreSQL there are no lines.
Works on `runtime` as an embedder does: no server process, no network, a model that answers at once. A turn is
a prompt, a reply with a tool call, its result of 2 kB, and an answer of 1 kB.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from bench_rig import Rig
from bench_table import Row as Line
from bench_table import median
from mock_text import prose
from runtime.embed.agent import Agent, FunctionTool
from runtime.store.postgres.store import PostgresStore
from runtime.store.sqlite.store import SqliteStore
from runtime.values.ids_and_time import utc_now
from runtime.values.model import CallPart, ModelRequest, Part, StopPart, TextPart
from runtime.values.rows import ToolCall
from runtime.values.stored import SessionRecord, Store
from tests.support.postgres import Server, programs

AT_ONCE = 16
"""Sessions of one process that work at the same time."""
_DISK = (
    "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'wholeturn%'"
)
_WAL = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"
_COMMITS = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'wholeturn'"


class Model:
    """Answers at once: a call, and then a text."""

    name = "bench"

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[list[Part]]]:
        """A call after a prompt, a text after a result."""
        await request.ready()
        rows = request.rows()
        answers = rows[-1].role == "tool"

        async def parts() -> AsyncIterator[list[Part]]:
            if answers:
                yield [TextPart(prose(1_000, len(rows))), StopPart("end")]
            else:
                yield [CallPart(0, ToolCall(f"c{len(rows)}", "look", "{}")), StopPart("tool_calls")]

        yield parts()

    async def aclose(self) -> None:
        """Nothing is open."""


async def look(_arguments: Mapping[str, object]) -> str:
    """The tool's result."""
    await trio.lowlevel.checkpoint()
    return prose(2_000, 7)


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    """Its milliseconds."""
    begun = time.perf_counter()
    await work()
    return 1e3 * (time.perf_counter() - begun)


async def talk(store: Store, name: str, turns: int, seen: list[float]) -> None:
    """A session of so many turns; the time of each goes to `seen`."""
    tool = FunctionTool("look", "Looks.", look)
    async with Agent(Model(), tools=[tool], store=store, session_id=name, window=32_000) as agent:
        for number in range(turns):
            seen.append(await timed(lambda number=number: agent.ask(f"{number} {prose(300, number)}")))  # type: ignore[misc]


async def one_by_one(store: Store, sessions: int, turns: int) -> tuple[float, float]:
    """(ms of a new session, ms of a turn), sessions one after another."""
    made: list[float] = []
    seen: list[float] = []
    for number in range(sessions):
        record = SessionRecord(f"new-{number}", "/bench", utc_now(), utc_now())
        made.append(await timed(lambda record=record: store.create_session(record)))  # type: ignore[misc]
        await talk(store, f"talk-{number}", turns, seen)
    return median(made), median(seen)


async def all_at_once(store: Store, turns: int) -> float:
    """Turns a second of many sessions that work at the same time."""
    seen: list[float] = []
    begun = time.perf_counter()
    async with trio.open_nursery() as nursery:
        for number in range(AT_ONCE):
            nursery.start_soon(talk, store, f"many-{number}", turns, seen)
    return len(seen) / (time.perf_counter() - begun)


def asked(server: Server, query: str) -> float:
    """One figure of the server's."""
    [[value]] = server.ask(query)
    return float(str(value or 0))


async def on_server(server: Server, sessions: int, turns: int, sqlite: tuple[float, float]) -> list[Line]:
    """All that is measured on the server."""
    store = PostgresStore(server.address())
    await store.session("nobody")
    # A server reports its commits with a delay.
    await trio.sleep(1.5)
    before = {query: asked(server, query) for query in (_DISK, _WAL, _COMMITS)}
    new_ms, turn_ms = await one_by_one(store, sessions, turns)
    working = asked(server, _CONNECTIONS)
    await trio.sleep(1.5)
    disk, wal, commits = (asked(server, query) - before[query] for query in (_DISK, _WAL, _COMMITS))
    per_second = await all_at_once(store, turns)
    many = asked(server, _CONNECTIONS)
    async with store.watch():
        watching = asked(server, _CONNECTIONS) - many
    await store.aclose()
    count = sessions * turns
    return [
        Line("a new session on PostgreSQL", new_ms, sqlite[0], "SQLite"),
        Line("a turn with a call on PostgreSQL", turn_ms, sqlite[1], "SQLite", bound=4),
        Line("  its disk, the session's share with it", disk / count / 1024, unit="kB"),
        Line("  its write-ahead log", wal / count / 1024, unit="kB"),
        Line("  its transactions", commits / count, unit=""),
        Line(f"  turns a second, {AT_ONCE} sessions of a process", per_second, unit=""),
        Line("  connections: one session at work", working, unit=""),
        Line(f"  connections: {AT_ONCE} sessions at work", many, unit=""),
        Line("  connections: for who watches", watching, unit=""),
    ]


async def on_file(path: Path, sessions: int, turns: int) -> tuple[float, float]:
    """The same in a file, to compare."""
    store = SqliteStore(path)
    found = await one_by_one(store, sessions, turns)
    await store.aclose()
    return found


def section(rig: Rig) -> list[Line]:
    """What a fleet's database has to bear."""
    if programs() is None:
        return []
    sessions, turns = (4, 5) if rig.quick else (20, 20)
    sqlite = trio.run(on_file, rig.folder / "sessions.db", sessions, turns)
    server = Server()
    try:
        server.start()
        return trio.run(on_server, server, sessions, turns, sqlite)
    finally:
        server.remove()
