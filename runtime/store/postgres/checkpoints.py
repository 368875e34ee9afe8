"""Checkpoints as PostgreSQL keeps them: one row each, beside the entries. Knows the table."""

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from runtime.store.postgres.schema import Connection
from runtime.store.postgres.statements import PARTS
from runtime.values.stored import LAST_SEQ, Checkpoint

_CHECKPOINTS = (
    f"{PARTS}, kept (seq, after, key, value, place) AS ("
    "SELECT found.*, 1 FROM (SELECT there.seq, there.after, there.key, there.value"
    " FROM parts JOIN wholeturn_checkpoints AS there ON session = number AND seq <= least(last, %s)"
    " ORDER BY seq DESC LIMIT 1) AS found"
    " UNION ALL SELECT found.*, place + 1 FROM kept CROSS JOIN LATERAL"
    " (SELECT there.seq, there.after, there.key, there.value"
    " FROM parts JOIN wholeturn_checkpoints AS there"
    " ON session = number AND there.seq <= least(last, kept.after)"
    " ORDER BY there.seq DESC LIMIT 1) AS found WHERE place < %s)"
    " SELECT seq, after, key, value FROM kept ORDER BY seq DESC LIMIT %s"
)
_KEEP = (
    "INSERT INTO wholeturn_checkpoints (session, seq, after, key, value)"
    " SELECT number, given.* FROM wholeturn_sessions,"
    " unnest(%b::bigint[], %b::bigint[], %b::text[], %b::bytea[]) AS given (seq, after, key, value)"
    " WHERE session_id = %s"
    " ON CONFLICT (session, seq) DO UPDATE"
    " SET after = excluded.after, key = excluded.key, value = excluded.value"
)

Run = Callable[[Callable[[Connection], Any]], Coroutine[Any, Any, Any]]


class PostgresCheckpoints:
    """The `Checkpoints` port. read, write: carry out a query, or a transaction, in a thread."""

    def __init__(self, read: Run, write: Run) -> None:
        self._read = read
        self._write = write

    async def latest(self, session_id: str, *, up_to: int = LAST_SEQ, limit: int = 100) -> list[Checkpoint]:
        query = partial(_latest, session_id=_id(session_id), up_to=up_to, limit=limit)
        found: list[Checkpoint] = await self._read(query)
        return found

    async def keep(self, session_id: str, checkpoints: Sequence[Checkpoint]) -> None:
        await self._write(partial(_keep, session_id=_id(session_id), checkpoints=tuple(checkpoints)))


def _id(text: str) -> str:
    """A name to look for: none that PostgreSQL cannot hold is there."""
    return "" if "\0" in text else text


def _latest(connection: Connection, session_id: str, up_to: int, limit: int) -> list[Checkpoint]:
    """What is kept of a session's entries up to that seq, see the port."""
    rows = connection.execute(_CHECKPOINTS, (session_id, up_to, limit, limit), binary=True)
    return [Checkpoint(*row) for row in rows]


def _keep(connection: Connection, session_id: str, checkpoints: Sequence[Checkpoint]) -> None:
    """Keep what was made of a session's entries; nothing without the session. One statement."""
    columns = [[getattr(one, name) for one in checkpoints] for name in ("seq", "after", "key", "value")]
    connection.execute(_KEEP, (*columns, session_id))
