"""Removing sessions for good: entries, index and head. Knows SQL, no thread and no log.

Freed pages are overwritten with zeros (`secure_delete`); what the write-ahead log still has of them goes when
the writer merges it.
"""

import sqlite3

from runtime.store.lease_rows import refuse_held
from runtime.store.leasing import FARTHEST_SECONDS
from runtime.store.schema import LAST_SEQ, SEQ_BITS

AT_ONCE = 20
"""Sessions that one transaction of a purge removes: others want to write too."""

_NUMBER = "SELECT number FROM sessions WHERE session_id = ?"
_OLD = (
    "SELECT number FROM sessions WHERE updated_at < ? AND number NOT IN"
    " (SELECT session FROM leases WHERE expires_at > ? AND expires_at <= ?) ORDER BY updated_at LIMIT ?"
)


def delete(connection: sqlite3.Connection, session_id: str, now: float) -> bool:
    """Remove one session; False when there is none. now: seconds since 1970. Raises SessionBusy."""
    found = connection.execute(_NUMBER, (session_id,)).fetchone()
    if found is not None:
        refuse_held(connection, found[0], session_id, now)
        _remove(connection, found[0])
    return found is not None


def purge(connection: sqlite3.Connection, older_than: str, now: float) -> int:
    """Remove some of the sessions that were last changed before that time; how many, 0 when none is left."""
    numbers = connection.execute(_OLD, (older_than, now, now + FARTHEST_SECONDS, AT_ONCE)).fetchall()
    for (number,) in numbers:
        _remove(connection, number)
    return len(numbers)


def drop(connection: sqlite3.Connection, number: int) -> None:
    """Leave nothing of a session's full-text index."""
    connection.execute(f"DROP TABLE IF EXISTS recall_{number}")
    connection.execute("DELETE FROM recalls WHERE session = ?", (number,))


def _remove(connection: sqlite3.Connection, number: int) -> None:
    drop(connection, number)
    first = number << SEQ_BITS
    connection.execute("DELETE FROM entries WHERE place BETWEEN ? AND ?", (first, first | LAST_SEQ))
    connection.execute("DELETE FROM leases WHERE session = ?", (number,))
    connection.execute("DELETE FROM sessions WHERE number = ?", (number,))
