"""Writing: each function makes the work of one transaction. Knows no file, no thread, no commit."""

import sqlite3
from collections.abc import Callable, Sequence

from runtime.store.faults import id_taken, no_session
from runtime.store.schema import ENTRY_COLUMNS, SESSION_COLUMNS
from runtime.stored import UNCHANGED, HeadChange, SessionRecord, StoredEntry

Work = Callable[[sqlite3.Connection], None]

_CREATE = f"INSERT INTO sessions ({SESSION_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_UPDATE = (
    "UPDATE sessions SET updated_at = coalesce(?, updated_at), title = coalesce(?, title),"
    " state = coalesce(?, state) WHERE session_id = ?"
)
# One look-up for both questions: is the session there, and which number came last.
_LAST_SEQ = (
    "SELECT (SELECT max(seq) FROM entries WHERE session_id = head.session_id)"
    " FROM sessions AS head WHERE session_id = ?"
)
_INSERT = (
    f"INSERT INTO entries ({ENTRY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (session_id, key) DO NOTHING"
)


def create(record: SessionRecord) -> Work:
    """A new session; StoreError when the id is taken."""
    row = (
        record.session_id,
        record.cwd,
        record.created_at,
        record.updated_at,
        record.title,
        record.state,
    )

    def work(connection: sqlite3.Connection) -> None:
        if not connection.execute(_CREATE, row).rowcount:
            raise id_taken(record.session_id)

    return work


def append(session_id: str, entries: Sequence[StoredEntry], head: HeadChange) -> Work:
    """Add entries behind the last one, skipping keys that are there; StoreError without the session."""
    kept = tuple(entries)

    def work(connection: sqlite3.Connection) -> None:
        found = connection.execute(_LAST_SEQ, (session_id,)).fetchone()
        if found is None:
            raise no_session(session_id)
        seq = (found[0] or 0) + 1
        for entry in kept:
            row = (session_id, seq, entry.turn_id, entry.key, entry.kind, entry.payload)
            seq += connection.execute(_INSERT, row).rowcount
        if head != UNCHANGED:
            connection.execute(_UPDATE, (*head, session_id))

    return work


def nothing(_connection: sqlite3.Connection) -> None:
    """No change: proves that the file can be opened and written."""


def check(connection: sqlite3.Connection) -> None:
    """Read every page; sqlite3.DatabaseError when one is damaged."""
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        error = sqlite3.DatabaseError(str(found).replace("\n", " "))
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error
