"""Which sessions of a SQLite file changed, by any process. Knows SQL and how often to look, no file.

SQLite tells nobody of a change: only a number that is cheap to read says that another connection committed.
Then every session's head and last entry are compared with what they were.
"""

import sqlite3
from collections.abc import Callable, Coroutine
from typing import Any

import trio

from runtime.store.common.faults import StoreTrouble
from runtime.store.common.watching import Watcher
from runtime.store.sqlite.queries import lenient
from runtime.store.sqlite.schema import LAST_SEQ, SEQ_BITS

_PAUSE_SECONDS = 0.1
_SHARE = 10
"""A look that takes long is followed by a pause of so many times its length: a large store is not read all
the time."""

# As bytes: one that is damaged must not keep the others from being seen.
_HEADS = (
    "SELECT CAST(session_id AS BLOB), number, CAST(updated_at AS BLOB), CAST(title AS BLOB),"
    " CAST(state AS BLOB), (SELECT max(place) FROM entries"
    f" WHERE place BETWEEN number << {SEQ_BITS} AND number << {SEQ_BITS} | {LAST_SEQ}) FROM sessions"
)


class SqliteWatch:
    """One who watches. read: carries out a query in a thread, which no cancellation interrupts."""

    def __init__(
        self, read: Callable[[Callable[[sqlite3.Connection], Any]], Coroutine[Any, Any, Any]]
    ) -> None:
        self._read = read
        self._known: dict[str, int] = {}
        # The connection is kept so that another one is never taken for it: the number means something on one
        # connection only.
        self._version: tuple[sqlite3.Connection | None, int] = (None, 0)
        self._due = 0.0

    async def look(self, watcher: Watcher) -> frozenset[str]:
        """What changed in this process, at once, or anywhere, a little later. Nothing while the file is in
        trouble; what changed meanwhile is found afterwards.
        """
        with trio.move_on_at(self._due):
            await watcher.wait()
        found: frozenset[str] = frozenset()
        if trio.current_time() >= self._due and not watcher.ended:
            found = await self.compare()
        return found | watcher.take()

    async def compare(self) -> frozenset[str]:
        """The sessions that changed since the last time; at first all of them."""
        began = trio.current_time()
        try:
            found: frozenset[str] = await self._read(self._changed)
        except StoreTrouble:
            found = frozenset()
        now = trio.current_time()
        self._due = now + max(_PAUSE_SECONDS, _SHARE * (now - began))
        return found

    def _changed(self, connection: sqlite3.Connection) -> frozenset[str]:
        # Asked first: what is committed between the two questions is looked at once more.
        version = connection, int(connection.execute("PRAGMA data_version").fetchone()[0])
        if version == self._version:
            return frozenset()
        heads = {lenient(row[0]): hash(row[1:]) for row in connection.execute(_HEADS)}
        found = frozenset(name for name, head in heads.items() if self._known.get(name) != head)
        self._known, self._version = heads, version
        return found
