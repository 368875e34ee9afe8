"""Which sessions in PostgreSQL changed, by any process: the server tells it. Knows SQL and one connection.

Every change tells its session's id when it is committed (NOTIFY). A connection that was cut has missed some:
each session's row says in which transaction it was changed last, and all transactions that were not over at
the last good look are looked at again.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import psycopg
import trio

from runtime.store.common.threads import Threads
from runtime.store.common.watching import Watcher
from runtime.store.postgres.connections import Link, translate
from runtime.store.postgres.schema import CHANNEL, Connection
from runtime.values.errors import StoreError

_CHECK_SECONDS = 10.0
"""How often a silent connection is asked something: a cut one is noticed, and little has to be read again."""
_PAUSE_SECONDS = 1.0

_LISTEN = f"DO $$ BEGIN EXECUTE format('LISTEN %I', {CHANNEL}); END $$"
# All transactions before it are over; one that is not has a number that is not smaller.
_MARK = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
_MISSED = "SELECT session_id FROM wholeturn_sessions WHERE change >= %s"


class Ear(NamedTuple):
    """A connection that listens. heard: the ids that were told on it; by the driver itself while it waits for
    the answer to a question.
    """

    connection: Connection
    heard: list[str]

    def take(self) -> tuple[str, ...]:
        """What was heard since the last time. Does not block; raises psycopg.Error when the line is cut."""
        line = self.connection.pgconn
        line.consume_input()
        while (notice := line.notifies()) is not None:
            self.heard.append(notice.extra.decode())
        taken = tuple(self.heard)
        self.heard.clear()
        return taken


_Answer = tuple[Ear, int, tuple[str, ...]]
"""Who listens, how far it knows all, and which sessions changed since the one before it."""


class PostgresWatch:
    """One who watches."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._threads = Threads(trio.CapacityLimiter(1))
        self._ear: Ear | None = None
        # Two looks back: a notice of what was over at the last look may still be on its way.
        self._marks = (0, 0)
        self._due = 0.0

    async def begin(self) -> None:
        """Listen from now on. While the server is away nothing is known: later all sessions are told."""
        self._put_off(_PAUSE_SECONDS)
        with suppress(StoreError):
            await self._listen(None)

    async def look(self, watcher: Watcher) -> frozenset[str]:
        """What changed; nothing while the server is away, what changed meanwhile is found afterwards."""
        if self._ear is None:
            await self._come_back(watcher)
            return watcher.take()
        with trio.move_on_at(self._due):
            await _something(self._ear.connection, watcher)
        try:
            await self._check(self._ear, watcher)
        except psycopg.Error:
            self.close()
            self._put_off(0)
        return watcher.take()

    def close(self) -> None:
        """Let go of the connection."""
        ear, self._ear = self._ear, None
        if ear is not None:
            ear.connection.close()

    async def _check(self, ear: Ear, watcher: Watcher) -> None:
        if trio.current_time() >= self._due and not watcher.ended:
            # Not ours while it is asked: who is cancelled meanwhile comes back with another one.
            self._ear = None
            self._ear, mark, _ = await self._in_thread(partial(_still_there, ear))
            self._marks = (self._marks[1], mark)
            self._put_off(_CHECK_SECONDS)
        if heard := ear.take():
            watcher.add(heard)

    async def _come_back(self, watcher: Watcher) -> None:
        with trio.move_on_at(self._due):
            await watcher.wait()
        if watcher.ended:
            return
        self._put_off(_PAUSE_SECONDS)
        with suppress(StoreError):
            missed = await self._listen(self._marks[0])
            if missed:
                watcher.add(missed)

    async def _listen(self, since: int | None) -> tuple[str, ...]:
        self._ear, mark, missed = await self._in_thread(partial(_listening, self._link, since))
        self._marks = (mark, mark)
        self._put_off(_CHECK_SECONDS)
        return missed

    async def _in_thread(self, ask: Callable[[], _Answer]) -> _Answer:
        """What the server says. Who is cancelled leaves the connection to the thread."""
        left = False
        answers: list[_Answer] = []

        def work() -> _Answer:
            answers.append(ask())
            if left:
                answers[0][0].connection.close()
            return answers[0]

        try:
            return await self._threads.run(work)
        except trio.Cancelled:
            left = True
            if answers:
                answers[0][0].connection.close()
            raise

    def _put_off(self, seconds: float) -> None:
        self._due = trio.current_time() + seconds


async def _something(connection: Connection, watcher: Watcher) -> None:
    """Until the connection has something to say, or the store is closed."""

    async def ended() -> None:
        await watcher.wait()
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ended)
        await trio.lowlevel.wait_readable(connection.fileno())
        nursery.cancel_scope.cancel()


def _mark(connection: Connection) -> int:
    row = connection.execute(_MARK).fetchone()
    return int(row[0]) if row else 0


def _still_there(ear: Ear) -> _Answer:
    """The same ear, and how far it knows all."""
    try:
        return ear, _mark(ear.connection), ()
    except psycopg.Error:
        ear.connection.close()
        raise


def _listening(link: Link, since: int | None) -> _Answer:
    """One who listens, how far it knows all, and what changed since the mark of the one before."""
    connection = link.connect()
    heard: list[str] = []
    connection.add_notify_handler(lambda notice: heard.append(notice.payload))
    try:
        connection.execute(_LISTEN.encode())
        mark = _mark(connection)
        # A smaller number than before: this is a copy of the store on another server.
        reached = mark if since is None else since if since <= mark else 0
        rows = () if since is None else connection.execute(_MISSED, (reached,)).fetchall()
        return Ear(connection, heard), mark, tuple(name for (name,) in rows)
    except psycopg.Error as error:
        connection.close()
        raise translate(error, link.address) from error
