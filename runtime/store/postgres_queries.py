"""Reading from PostgreSQL: SQL in, values of the Store port out. Knows no thread."""

from runtime.store.cursor import Place, encode
from runtime.store.postgres_changes import SESSION_COLUMNS
from runtime.store.postgres_schema import Connection
from runtime.stored import SessionPage, SessionRecord, StoredEntry

_SESSION = f"SELECT {SESSION_COLUMNS} FROM wholeturn_sessions WHERE session_id = %s"
_NUMBER = "(SELECT number FROM wholeturn_sessions WHERE session_id = %s)"
_ENTRIES = (
    "SELECT turn_id, key, kind, payload, seq FROM wholeturn_entries"
    f" WHERE session = {_NUMBER} AND seq > %s ORDER BY seq LIMIT %s"
)
_POSITION = f"SELECT seq FROM wholeturn_entries WHERE session = {_NUMBER} AND key = %s"
_LIST = (
    f"SELECT {SESSION_COLUMNS} FROM wholeturn_sessions"
    " {where} ORDER BY updated_at DESC, session_id DESC LIMIT %s"
)


def session(connection: Connection, session_id: str) -> SessionRecord | None:
    """One session's head."""
    row = connection.execute(_SESSION, (session_id,)).fetchone()
    return None if row is None else SessionRecord(*row)


def entries(connection: Connection, session_id: str, after: int, limit: int) -> list[StoredEntry]:
    """Entries with seq > after, at most `limit`."""
    given = (session_id, max(after, 0), max(limit, 0))
    # Binary: text form would send two characters for each byte of a payload.
    rows = connection.execute(_ENTRIES, given, binary=True)
    return [StoredEntry(*row) for row in rows]


def position(connection: Connection, session_id: str, key: str) -> int | None:
    """The number of the entry with that key."""
    row = connection.execute(_POSITION, (session_id, key)).fetchone()
    return None if row is None else int(row[0])


def page(connection: Connection, cwd: str | None, place: Place | None, limit: int) -> SessionPage:
    """One page of heads, newest change first."""
    tests = ["cwd = %s"] * (cwd is not None) + ["(updated_at, session_id) < (%s, %s)"] * (place is not None)
    where = f"WHERE {' AND '.join(tests)}" if tests else ""
    limit = max(limit, 1)
    given = (() if cwd is None else (cwd,)) + (place or ())
    rows = connection.execute(_LIST.format(where=where).encode(), (*given, limit + 1)).fetchall()
    records = tuple(SessionRecord(*row) for row in rows[:limit])
    return SessionPage(records, encode(records[-1]) if len(rows) > limit else None)
