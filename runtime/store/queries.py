"""Reading: SQL in, values of the Store port out. Knows no file and no thread."""

import sqlite3

from runtime.store.cursor import Place, encode
from runtime.store.schema import LAST_SEQ, SEQ_BITS, SESSION_COLUMNS
from runtime.stored import SessionPage, SessionRecord, StoredEntry

_SESSION = f"SELECT {SESSION_COLUMNS} FROM sessions WHERE session_id = ?"
_ENTRIES = (
    f"SELECT turn_id, key, kind, payload, place & {LAST_SEQ} FROM sessions CROSS JOIN entries"
    f" ON place > number << {SEQ_BITS} | ?2 AND place <= number << {SEQ_BITS} | {LAST_SEQ}"
    " WHERE session_id = ?1 ORDER BY place LIMIT ?3"
)
# The sign keeps SQLite from converting the number, which would keep it from using the index.
_POSITION = (
    f"SELECT place & {LAST_SEQ} FROM entries"
    f" WHERE place >> {SEQ_BITS} = (SELECT +number FROM sessions WHERE session_id = ?) AND key = ?"
)
_LIST = "SELECT {columns} FROM sessions {where} ORDER BY updated_at DESC, session_id DESC LIMIT ?"


def session(connection: sqlite3.Connection, session_id: str) -> SessionRecord | None:
    """One session's head."""
    row = connection.execute(_SESSION, (session_id,)).fetchone()
    return None if row is None else SessionRecord(*row)


def entries(connection: sqlite3.Connection, session_id: str, after: int, limit: int) -> list[StoredEntry]:
    """Entries with seq > after, at most `limit`."""
    rows = connection.execute(_ENTRIES, (session_id, min(max(after, 0), LAST_SEQ), max(limit, 0)))
    return [StoredEntry(*row) for row in rows]


def position(connection: sqlite3.Connection, session_id: str, key: str) -> int | None:
    """The number of the entry with that key."""
    row = connection.execute(_POSITION, (session_id, key)).fetchone()
    return None if row is None else int(row[0])


def list_statement(*, by_cwd: bool, continued: bool) -> str:
    """The statement of one page; its parameters are cwd, place and limit, those that apply."""
    tests = ["cwd = ?"] * by_cwd + ["(updated_at, session_id) < (?, ?)"] * continued
    where = f"WHERE {' AND '.join(tests)}" if tests else ""
    return _LIST.format(columns=SESSION_COLUMNS, where=where)


def page(connection: sqlite3.Connection, cwd: str | None, place: Place | None, limit: int) -> SessionPage:
    """One page of heads, newest change first."""
    statement = list_statement(by_cwd=cwd is not None, continued=place is not None)
    limit = max(limit, 1)
    given = (() if cwd is None else (cwd,)) + (place or ())
    rows = connection.execute(statement, (*given, limit + 1)).fetchall()
    records = tuple(SessionRecord(*row) for row in rows[:limit])
    return SessionPage(records, encode(records[-1]) if len(rows) > limit else None)
