"""The Store port over a PostgreSQL database. Knows which thread does what; the SQL is elsewhere.

The driver blocks and is called in worker threads. A change that was begun is finished whatever its caller
does, who is held up by it for a moment at most; a read is left to itself when its caller is cancelled.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from typing import TypeVar

import trio

from runtime.store.common.faults import StoreTrouble, TroubleKind, closed, decode, masked
from runtime.store.common.leases import LEASE_SECONDS
from runtime.store.common.threads import Threads
from runtime.store.common.watching import Changed, Watchers
from runtime.store.postgres import statements as changes
from runtime.store.postgres import statements as queries
from runtime.store.postgres.checkpoints import PostgresCheckpoints
from runtime.store.postgres.connections import CONNECTIONS, Link
from runtime.store.postgres.leases import Heartbeat, PostgresLeases
from runtime.store.postgres.schema import Connection
from runtime.store.postgres.watch import PostgresWatch
from runtime.values.stored import (
    UNCHANGED,
    Checkpoints,
    HeadChange,
    Hit,
    Lease,
    Leases,
    SessionPage,
    SessionRecord,
    StoredEntry,
)

T = TypeVar("T")

_IDLE_SECONDS = 5.0
"""How long a process that stands still keeps a session locked; its lease takes longer to run out."""
_IMPATIENT_SECONDS = 2.0
"""How long a read is waited for while a change stands still."""
_READ_SLACK_SECONDS = 5.0
"""How much longer than a statement may take a read is waited for: the server may not be there to end it."""


class PostgresStore:
    """Connects at the first use. Any number of processes on any machines may use one database.

    address: `postgresql://…`. lease_seconds: how long a lease holds without a sign of life.
    statement_seconds: how long one statement may take before StoreTrouble. clock: seconds since 1970 for
    leases, else the server's.
    """

    def __init__(
        self,
        address: str,
        *,
        lease_seconds: float = LEASE_SECONDS,
        statement_seconds: float = 20.0,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._clock = clock
        idle_seconds = min(_IDLE_SECONDS, lease_seconds / 3)
        self._link = Link(address, statement_seconds=statement_seconds, idle_seconds=idle_seconds)
        self._heartbeat = Heartbeat(self._link, lease_seconds)
        self.checkpoints: Checkpoints = PostgresCheckpoints(self._read, self._write)
        self.leases: Leases = PostgresLeases(self._write, self._heartbeat, clock, lease_seconds)
        self._limiter = trio.CapacityLimiter(CONNECTIONS)
        self._threads = Threads(self._limiter)
        self._read_seconds = statement_seconds + _READ_SLACK_SECONDS
        self._watchers = Watchers()
        self._closed = False

    async def create_session(self, record: SessionRecord) -> None:
        tries = count()
        await self._write(
            lambda found: changes.create(found, record, again=next(tries) > 0), record.session_id
        )

    async def session(self, session_id: str) -> SessionRecord | None:
        return await self._read(partial(queries.session, session_id=_id(session_id)))

    async def list_sessions(self, *, cwd: str | None, cursor: str | None, limit: int) -> SessionPage:
        place = decode(cursor)
        return await self._read(partial(queries.page, cwd=cwd, place=place, limit=limit))

    async def append(
        self,
        session_id: str,
        entries: Sequence[StoredEntry],
        *,
        head: HeadChange = UNCHANGED,
        lease: Lease | None = None,
    ) -> None:
        given = partial(changes.append, entries=tuple(entries), head=head, lease=lease, clock=self._clock)
        await self._write(partial(given, session_id=session_id), session_id, self._link.run)

    async def entries(self, session_id: str, *, after: int = 0, limit: int = 500) -> list[StoredEntry]:
        given = partial(queries.entries, session_id=_id(session_id), after=after, limit=limit)
        return await self._read(given)

    async def position(self, session_id: str, key: str) -> int | None:
        return await self._read(partial(queries.position, session_id=_id(session_id), key=_id(key)))

    async def search(
        self, session_id: str, query: str, *, limit: int, before_turn: str | None = None
    ) -> list[Hit]:
        from runtime.store.postgres import search_index

        sought = search_index.Sought(_id(session_id), query, limit, before_turn)
        return await search_index.search(self, self._read, self._write, sought)

    async def delete_session(self, session_id: str) -> bool:
        found = False

        def work(connection: Connection) -> bool:
            nonlocal found
            found = changes.delete(connection, _id(session_id), self._clock) or found
            return found

        return await self._write(work, session_id)

    async def fork_session(self, record: SessionRecord, source_id: str, *, up_to: int) -> None:
        tries = count()
        await self._write(
            lambda found: changes.fork(found, record, _id(source_id), up_to, again=next(tries) > 0),
            record.session_id,
        )

    async def purge(self, older_than: str) -> int:
        total, looked = 0, 1
        while looked:
            some = partial(changes.purge, older_than=older_than, clock=self._clock)
            looked, removed = await self._write(some)
            total += removed
        return total

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[AsyncIterator[frozenset[str]]]:
        """Holds one connection of its own."""
        self._refuse_when_closed()
        watch = PostgresWatch(self._link)
        try:
            with self._watchers.joined() as watcher:
                await watch.begin()
                yield Changed(watcher, watch.look)
        finally:
            watch.close()

    async def aclose(self) -> None:
        self._closed = True
        self._watchers.end()
        await Threads(trio.CapacityLimiter(1)).run(self._close)

    def _close(self) -> None:
        self._heartbeat.stop()
        self._link.close()

    async def _write(
        self,
        work: Callable[[Connection], T],
        session_id: str = "",
        run: Callable[[Callable[[Connection], T]], T] | None = None,
    ) -> T:
        self._refuse_when_closed()
        return await self._threads.run(partial(run or self._link.write, work), session_id)

    async def _read(self, query: Callable[[Connection], T]) -> T:
        self._refuse_when_closed()
        with trio.move_on_after(_IMPATIENT_SECONDS if self._threads.stands_still else self._read_seconds):
            return await trio.to_thread.run_sync(
                self._link.run, query, limiter=self._limiter, abandon_on_cancel=True
            )
        raise StoreTrouble(TroubleKind.STALLED, masked(self._link.address))

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise closed()


def _id(text: str) -> str:
    """A name to look for: none that PostgreSQL cannot hold is there."""
    return "" if "\0" in text else text
