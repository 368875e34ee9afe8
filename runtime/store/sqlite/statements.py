"""Writing and removing: each function makes the work of one transaction. Knows no file, no thread, no commit.

Entries that copies share stay, without a head, until the last of those is removed too.

Freed pages are overwritten with zeros (`secure_delete`); what the write-ahead log still has of them goes when
the writer merges it.
"""

import sqlite3
from collections.abc import Callable, Sequence

from runtime.store.common.faults import fork_taken, id_taken, no_session, no_source
from runtime.store.common.leases import FARTHEST_SECONDS, check, held_in, refuse_others
from runtime.store.sqlite.schema import (
    ENTRY_COLUMNS,
    LAST_NUMBER,
    LAST_SEQ,
    SEQ_BITS,
    SESSION_COLUMNS,
    SHARED_COLUMNS,
)
from runtime.store.sqlite.shared_entries import last_seq, position, segments_of, shared_with
from runtime.values.errors import StoreError
from runtime.values.stored import UNCHANGED, HeadChange, Lease, SessionRecord, StoredEntry

_HELD = "SELECT fence, holder, owner, expires_at FROM leases WHERE session = ?"


def check_in(connection: sqlite3.Connection, number: int, lease: Lease, now: float) -> None:
    """Whether a session may be written to under the lease; see `common.leases.check`."""
    row = connection.execute(_HELD, (number,)).fetchone()
    check(lease, None if row is None else held_in(row), now)


def refuse_held(connection: sqlite3.Connection, number: int, session_id: str, now: float) -> None:
    """Raise SessionBusy when someone holds the session."""
    row = connection.execute(_HELD, (number,)).fetchone()
    refuse_others(session_id, None if row is None else held_in(row), "", now)


Work = Callable[[sqlite3.Connection], None]

_HEAD = f"SELECT {SESSION_COLUMNS} FROM sessions WHERE session_id = ?"
_NUMBER = "SELECT number FROM sessions WHERE session_id = ?"
_SHARE = f"INSERT INTO shared ({SHARED_COLUMNS}) VALUES (?, ?, ?)"

# Numbered here: SQLite would go on from a damaged row with an absurd number, and give a number again whose
# head was lost but not its entries.
_CREATE = (
    f"INSERT INTO sessions (number, {SESSION_COLUMNS}) VALUES (1 + max("
    f"(SELECT coalesce(max(number), 0) FROM sessions WHERE number < {LAST_NUMBER}),"
    f" (SELECT coalesce(max(place), 0) >> {SEQ_BITS} FROM entries WHERE place < {LAST_NUMBER} << {SEQ_BITS})"
    "), ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
_UPDATE = (
    "UPDATE sessions SET updated_at = coalesce(?, updated_at), title = coalesce(?, title),"
    " state = coalesce(?, state) WHERE session_id = ?"
)
# One look-up for all questions: is the session there, which place was given last, does it share entries.
_LAST_PLACE = (
    f"SELECT number << {SEQ_BITS}, (SELECT max(place) FROM entries WHERE place BETWEEN number << {SEQ_BITS}"
    f" AND number << {SEQ_BITS} | {LAST_SEQ}), (SELECT 1 FROM shared WHERE session = number)"
    f" FROM sessions WHERE session_id = ? AND number <= {LAST_NUMBER}"
)
_INSERT = (
    f"INSERT INTO entries ({ENTRY_COLUMNS}) VALUES (?, ?, ?, ?, ?)"
    f" ON CONFLICT (place >> {SEQ_BITS}, key) DO NOTHING"
)


def create(record: SessionRecord) -> Work:
    """A new session; StoreError when the id is taken.

    Carried out again, it finds what it made: a failure may be reported although the commit was made.
    """
    row = (
        record.session_id,
        record.cwd,
        record.created_at,
        record.updated_at,
        record.title,
        record.state,
    )

    again = False

    def work(connection: sqlite3.Connection) -> None:
        nonlocal again
        repeated, again = again, True
        if not connection.execute(_CREATE, row).rowcount and not (repeated and _is_there(connection, record)):
            raise id_taken(record.session_id)

    return work


def append(
    session_id: str,
    entries: Sequence[StoredEntry],
    head: HeadChange,
    lease: Lease | None = None,
    now: float = 0.0,
) -> Work:
    """Add entries behind the last one, skipping keys that are there; StoreError without the session.

    lease: must still be had at `now`, seconds since 1970.
    """
    kept = tuple(entries)

    def work(connection: sqlite3.Connection) -> None:
        found = connection.execute(_LAST_PLACE, (session_id,)).fetchone()
        if found is None:
            raise no_session(session_id)
        first, place, shares = found
        if lease is not None:
            check_in(connection, first >> SEQ_BITS, lease, now)
        added: Sequence[StoredEntry] = kept
        if shares:
            parts = segments_of(connection, session_id)
            added = [entry for entry in kept if position(connection, parts[1:], entry.key) is None]
            place = first | last_seq(connection, parts)
        place = (place or first) + 1
        for entry in added:
            if place & LAST_SEQ == 0:
                raise StoreError(f"the session {session_id!r} is full: it holds no more entries")
            row = (place, entry.turn_id, entry.key, entry.kind, entry.payload)
            place += connection.execute(_INSERT, row).rowcount
        if head != UNCHANGED:
            connection.execute(_UPDATE, (*head, session_id))

    return work


def fork(record: SessionRecord, source_id: str, up_to: int) -> Work:
    """A new session that shares the source's first entries, see the port. Repeated, as `create`."""
    make = create(record)
    again = False

    def work(connection: sqlite3.Connection) -> None:
        nonlocal again
        repeated, again = again, True
        if repeated and _is_there(connection, record):
            return
        parts = segments_of(connection, source_id)
        if not parts:
            raise no_source(source_id)
        if connection.execute(_NUMBER, (record.session_id,)).fetchone():
            raise fork_taken(record.session_id)
        make(connection)
        number = connection.execute(_NUMBER, (record.session_id,)).fetchone()[0]
        last = min(up_to, last_seq(connection, parts))
        # Of the segment that has the last one: what that shares is shared with whom it shares it.
        owner = next((part.number for part in parts if part.after < last), None)
        if owner is not None:
            connection.execute(_SHARE, (number, owner, last))

    return work


def _is_there(connection: sqlite3.Connection, record: SessionRecord) -> bool:
    found = connection.execute(_HEAD, (record.session_id,)).fetchone()
    return found is not None and SessionRecord(*found) == record


def nothing(_connection: sqlite3.Connection) -> None:
    """No change: proves that the file can be opened and written."""


def check_file(connection: sqlite3.Connection) -> None:
    """Read every page; sqlite3.DatabaseError when one is damaged."""
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        error = sqlite3.DatabaseError(str(found).replace("\n", " "))
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error


AT_ONCE = 20
"""Sessions that one transaction of a purge removes: others want to write too."""

_OLD = (
    "SELECT number FROM sessions WHERE updated_at < ? AND number NOT IN"
    " (SELECT session FROM leases WHERE expires_at > ? AND expires_at <= ?) ORDER BY updated_at LIMIT ?"
)
# Of rows that say what can be.
_REACH = "SELECT max(up_to) FROM shared WHERE source = ?1 AND session > ?1 AND typeof(up_to) = 'integer'"


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
    connection.execute("DELETE FROM leases WHERE session = ?", (number,))
    connection.execute("DELETE FROM sessions WHERE number = ?", (number,))
    _prune(connection, number)


def _prune(connection: sqlite3.Connection, number: int) -> None:
    """Remove what nobody shares of a number that has no head, then of the one that it shared with."""
    while connection.execute("SELECT 1 FROM sessions WHERE number = ?", (number,)).fetchone() is None:
        reach = connection.execute(_REACH, (number,)).fetchone()[0]
        first = number << SEQ_BITS
        gone = first | min(max(reach or 0, 0), LAST_SEQ), first | LAST_SEQ
        for table in ("entries", "checkpoints"):
            connection.execute(f"DELETE FROM {table} WHERE place > ? AND place <= ?", gone)
        source = shared_with(connection, number)
        if reach is None:
            connection.execute("DELETE FROM shared WHERE session = ?", (number,))
        else:
            connection.execute("UPDATE shared SET up_to = min(up_to, ?) WHERE session = ?", (reach, number))
        if source is None:
            return
        number = source[0]
