"""The Store port over one SQLite file. Knows which thread does what; the SQL and the file are elsewhere."""

import sqlite3
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import trio

from runtime.store.common.faults import StoreTrouble, TroubleKind, closed, decode
from runtime.store.common.watching import Changed, Watchers
from runtime.store.sqlite import queries, statements
from runtime.store.sqlite.checkpoints import SqliteCheckpoints
from runtime.store.sqlite.connection import translate
from runtime.store.sqlite.file import Readers, StoreFile
from runtime.store.sqlite.leases import Pulse, SqliteLeases
from runtime.store.sqlite.queries import DamagedCells
from runtime.store.sqlite.writer import Writer
from runtime.values.grace import withstanding
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

_READS_AT_ONCE = 4


class Repairs:
    """What was mended in the writer's thread, to be told in trio's."""

    def __init__(self, on_repair: Callable[[str], None]) -> None:
        self._on_repair = on_repair
        self._told: deque[str] = deque()

    def add(self, text: str) -> None:
        """In any thread."""
        self._told.append(text)

    def tell(self) -> None:
        """In trio's thread."""
        while self._told:
            self._on_repair(self._told.popleft())


class SqliteStore:
    """Opens its file at the first use. Several processes may use one file, for different sessions.

    patience: seconds to wait for another program's lock before StoreTrouble. on_repair: told, in trio's
    thread, when a damaged file was replaced by what could be read of it. clock: seconds since 1970, the same
    for all processes that use the file. eager: begin to open the file in the background right away.
    """

    def __init__(
        self,
        path: Path,
        *,
        on_repair: Callable[[str], None] = lambda _told: None,
        patience: float = 5.0,
        clock: Callable[[], float] = time.time,
        eager: bool = False,
    ) -> None:
        self._clock = clock
        self._file = StoreFile(path, patience=patience)
        self._readers = Readers(self._file.open_reader)
        pulse = Pulse(clock)
        self._writer = Writer(
            path,
            open_file=self._file.open_writer,
            repair=self._repair_file,
            patience=patience,
            pulse=pulse,
        )
        self.leases: Leases = SqliteLeases(self._write, pulse, clock)
        self.checkpoints: Checkpoints = SqliteCheckpoints(self._read, self._write)
        self._repairs = Repairs(on_repair)
        self._limiter = trio.CapacityLimiter(_READS_AT_ONCE)
        self._watchers = Watchers()
        self._closed = False
        if eager:
            self._writer.warm_up()

    async def create_session(self, record: SessionRecord) -> None:
        await self._write(statements.create(record))
        self._watchers.tell(record.session_id)

    async def session(self, session_id: str) -> SessionRecord | None:
        return await self._read(partial(queries.session, session_id=session_id))

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
        await self._write(statements.append(session_id, entries, head, lease, self._clock()))
        self._watchers.tell(session_id)

    async def entries(self, session_id: str, *, after: int = 0, limit: int = 500) -> list[StoredEntry]:
        return await self._read(partial(queries.entries, session_id=session_id, after=after, limit=limit))

    async def position(self, session_id: str, key: str) -> int | None:
        return await self._read(partial(queries.position, session_id=session_id, key=key))

    async def search(
        self, session_id: str, query: str, *, limit: int, before_turn: str | None = None
    ) -> list[Hit]:
        from runtime.store.sqlite import search_index

        sought = search_index.Sought(session_id, query, limit, before_turn)
        return await search_index.search(self, self._read, self._write, sought)

    async def delete_session(self, session_id: str) -> bool:
        return await self._remove(partial(statements.delete, session_id=session_id, now=self._clock()))

    async def fork_session(self, record: SessionRecord, source_id: str, *, up_to: int) -> None:
        await self._write(statements.fork(record, source_id, up_to))
        self._watchers.tell(record.session_id)

    async def purge(self, older_than: str) -> int:
        total = 0
        some = partial(statements.purge, older_than=older_than, now=self._clock())
        while removed := await self._remove(some):
            total += removed
        return total

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[AsyncIterator[frozenset[str]]]:
        """Other processes' changes are seen after a tenth of a second."""
        self._refuse_when_closed()
        await self._open()
        # What it compared it has told: no look may be left half way.
        look = partial(self._in_thread, to_the_end=True)
        from runtime.store.sqlite.watch import SqliteWatch

        watch = SqliteWatch(look)
        with self._watchers.joined() as watcher:
            await watch.compare()
            yield Changed(watcher, watch.look)

    async def aclose(self) -> None:
        self._closed = True
        self._watchers.end()
        async with withstanding():
            # Readers first: the last connection to close tidies the write-ahead log away.
            await trio.to_thread.run_sync(self._readers.pause, abandon_on_cancel=True)
            self._readers.resume()
            await self._writer.aclose()
            self._file.close()

    async def _write(self, work: statements.Work) -> None:
        self._refuse_when_closed()
        try:
            await self._writer.run(work)
        finally:
            self._repairs.tell()

    async def _remove(self, remove: Callable[[sqlite3.Connection], T]) -> T:
        answers: list[T] = []

        def work(connection: sqlite3.Connection) -> None:
            answers[:] = [remove(connection)]

        await self._write(work)
        if answers[0]:
            self._writer.wipe_log()
        return answers[0]

    async def _read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        self._refuse_when_closed()
        opening = None if self._writer.is_open else await self._open()
        try:
            return await self._in_thread(query)
        except DamagedCells as damage:
            await self._mend(damage)
            return await self._in_thread(partial(queries.whatever_became_of_it, query))
        except StoreTrouble as trouble:
            if trouble.kind is not TroubleKind.CORRUPT:
                raise opening or trouble from None
        # The writer checks the whole file, which repairs it, and then there is one more try.
        await self._write(statements.check_file)
        return await self._in_thread(query)

    async def _mend(self, damage: DamagedCells) -> None:
        """Put damaged cells right and tell of it. Where nothing can be written they are read as they are."""
        from runtime.store.sqlite import mend_cells as mending

        def work(connection: sqlite3.Connection) -> None:
            if told := mending.mend(connection, damage.page):
                self._repairs.add(mending.mended_text(self._file.path, told))

        with suppress(StoreTrouble):
            await self._write(work)

    async def _open(self) -> StoreTrouble | None:
        """Create or update the file. What stops that need not stop a read: it is only returned."""
        try:
            await self._write(statements.nothing)
        except StoreTrouble as trouble:
            return trouble
        return None

    async def _in_thread(self, query: Callable[[sqlite3.Connection], T], *, to_the_end: bool = False) -> T:
        try:
            return await trio.to_thread.run_sync(
                self._readers.run, query, limiter=self._limiter, abandon_on_cancel=not to_the_end
            )
        except (sqlite3.Error, UnicodeEncodeError) as error:
            raise translate(error, self._file.path) from error

    def _repair_file(self) -> None:
        self._readers.pause()
        try:
            self._repairs.add(self._file.repair())
        finally:
            self._readers.resume()

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise closed()
