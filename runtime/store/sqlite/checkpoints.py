"""Checkpoints as the SQLite store keeps them: one row each, beside the entries. Knows the table."""

import sqlite3
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from runtime.store.sqlite import queries
from runtime.store.sqlite.schema import LAST_SEQ, SEQ_BITS
from runtime.store.sqlite.shared_entries import segments_of
from runtime.store.sqlite.statements import Work
from runtime.values.stored import Checkpoint

_NUMBER = "SELECT number FROM sessions WHERE session_id = ?"
_CHECKPOINT = (
    f"SELECT place & {LAST_SEQ}, after, key, value FROM checkpoints"
    " WHERE place > ? AND place <= ? ORDER BY place DESC LIMIT 1"
)
_KEEP = "INSERT OR REPLACE INTO checkpoints (place, after, key, value) VALUES (?, ?, ?, ?)"


class SqliteCheckpoints:
    """The `Checkpoints` port. read, write: carry out a query in a thread, a change in the writer's thread."""

    def __init__(
        self,
        read: Callable[[Callable[[sqlite3.Connection], Any]], Coroutine[Any, Any, Any]],
        write: Callable[[Work], Coroutine[Any, Any, None]],
    ) -> None:
        self._read = read
        self._write = write

    async def latest(self, session_id: str, *, up_to: int = LAST_SEQ, limit: int = 100) -> list[Checkpoint]:
        query = partial(latest, session_id=session_id, up_to=up_to, limit=limit)
        found: list[Checkpoint] = await self._read(query)
        return found

    async def keep(self, session_id: str, checkpoints: Sequence[Checkpoint]) -> None:
        await self._write(kept(session_id, tuple(checkpoints)))


def latest(connection: sqlite3.Connection, session_id: str, up_to: int, limit: int) -> list[Checkpoint]:
    """What is kept of a session's entries up to that seq, see the port."""
    parts = segments_of(connection, session_id)
    found: list[Checkpoint] = []
    while len(found) < limit and up_to > 0:
        ends = [(part.number << SEQ_BITS, min(up_to, part.last)) for part in parts]
        with queries.leniently(connection):
            newest = [connection.execute(_CHECKPOINT, (first, first | end)).fetchone() for first, end in ends]
        row = max(filter(None, newest), key=itemgetter(0), default=None)
        if row is None or not _is_checkpoint(row):
            break
        found.append(Checkpoint(*row))
        up_to = found[-1].after
    return found


def _is_checkpoint(row: Sequence[object]) -> bool:
    seq, after, key, value = row
    numbered = isinstance(seq, int) and isinstance(after, int) and 0 <= after < seq
    return numbered and isinstance(key, str) and isinstance(value, bytes)


def kept(session_id: str, checkpoints: Sequence[Checkpoint]) -> Work:
    """Keep what was made of a session's entries, in the place of what ends at the same; see the port."""

    def work(connection: sqlite3.Connection) -> None:
        found = connection.execute(_NUMBER, (session_id,)).fetchone()
        if found is not None:
            first = found[0] << SEQ_BITS
            rows = [(first | seq, after, key, value) for seq, after, key, value in checkpoints]
            connection.executemany(_KEEP, rows)

    return work
