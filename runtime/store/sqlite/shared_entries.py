"""Which entries are a session's: its own, and for a copy those that it shares with its source.

A copy stores no entry again. Its row in `shared` says that its entries up to a seq are those of another
number, which may share in its turn. Numbers only grow, so the source's is always the smaller one; it stays,
without a head, when the source is deleted, as far as somebody shares it. Knows SQL and no transaction.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from runtime.store.sqlite.schema import LAST_NUMBER, LAST_SEQ, SEQ_BITS

ROW = f"turn_id, key, kind, payload, place & {LAST_SEQ}"
"""An entry as the port has it."""

_SESSION = (
    "SELECT number, (SELECT 1 FROM shared WHERE session = number) FROM sessions"
    f" WHERE session_id = ? AND number <= {LAST_NUMBER}"
)
_SHARED = "SELECT source, up_to FROM shared WHERE session = ?"
_ENTRIES = f"SELECT {ROW} FROM entries WHERE place > ? AND place <= ? ORDER BY place LIMIT ?"
_POSITION = f"SELECT place & {LAST_SEQ} FROM entries WHERE place >> {SEQ_BITS} = ? AND key = ?"
_LAST_PLACE = "SELECT max(place) FROM entries WHERE place > ? AND place <= ?"


class Segment(NamedTuple):
    """Entries of a session that are stored under this number: those with after < seq <= last."""

    number: int
    after: int
    last: int

    def places(self, after: int = 0, last: int = LAST_SEQ) -> tuple[int, int]:
        """The row ids of those with after < seq <= last: behind the first, up to the second."""
        first = self.number << SEQ_BITS
        return first | min(max(self.after, after), LAST_SEQ), first | min(self.last, last)


def segments_of(connection: sqlite3.Connection, session_id: str) -> tuple[Segment, ...]:
    """A session's segments, newest first; none without the session."""
    found = connection.execute(_SESSION, (session_id,)).fetchone()
    if found is None:
        return ()
    number, shares = found
    return segments(connection, number) if shares else (Segment(number, 0, LAST_SEQ),)


def segments(connection: sqlite3.Connection, number: int) -> tuple[Segment, ...]:
    """The segments below a number, newest first."""
    found: list[Segment] = []
    last = LAST_SEQ
    while True:
        source, up_to = shared_with(connection, number) or (0, 0)
        up_to = min(up_to, last)
        found.append(Segment(number, up_to, last))
        if not up_to:
            return tuple(found)
        number, last = source, up_to


def shared_with(connection: sqlite3.Connection, number: int) -> tuple[int, int] | None:
    """(source, up to which seq) of a copy. A row that says what cannot be counts as none."""
    row = connection.execute(_SHARED, (number,)).fetchone()
    if row is None or not all(type(cell) is int for cell in row) or not 0 < row[0] < number:
        return None
    return row[0], min(max(row[1], 0), LAST_SEQ)


def rows(
    connection: sqlite3.Connection, parts: Sequence[Segment], after: int, limit: int
) -> Iterator[tuple[Any, ...]]:
    """Rows of the entries behind `after`, in order, at most `limit`. Raises sqlite3.Error."""
    for part in reversed(parts):
        if limit > 0 and part.last > after:
            given = (*part.places(after), limit)
            for row in connection.execute(_ENTRIES, given):
                limit -= 1
                yield row


def position(connection: sqlite3.Connection, parts: Sequence[Segment], key: str) -> int | None:
    """The seq of the entry with that key."""
    for part in parts:
        row = connection.execute(_POSITION, (part.number, key)).fetchone()
        if row is not None and part.after < row[0] <= part.last:
            return int(row[0])
    return None


def last_seq(connection: sqlite3.Connection, parts: Sequence[Segment]) -> int:
    """The seq of the last entry; 0 when there is none."""
    for part in parts:
        place = connection.execute(_LAST_PLACE, part.places()).fetchone()[0]
        if place is not None:
            return int(place) & LAST_SEQ
    return 0
