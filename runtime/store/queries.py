"""Reading: SQL in, values of the Store port out. Knows no file and no thread.

Each may raise DamagedCells; on a connection that reads leniently it gives what can be read.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from runtime.store import cells
from runtime.store.cursor import Place, encode
from runtime.store.schema import LAST_SEQ, SEQ_BITS, SESSION_COLUMNS
from runtime.stored import SessionPage, SessionRecord, StoredEntry

T = TypeVar("T")

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
    found = _heads(connection, _SESSION, (session_id,))
    return found[0] if found else None


def entries(connection: sqlite3.Connection, session_id: str, after: int, limit: int) -> list[StoredEntry]:
    """Entries with seq > after, at most `limit`."""
    asked = cells.Page(session_id, min(max(after, 0), LAST_SEQ), max(limit, 0))
    return entries_in(connection, _rows(connection, _ENTRIES, asked, asked), asked)


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
    found = _heads(connection, statement, (*given, limit + 1))
    records = tuple(found[:limit])
    return SessionPage(records, encode(records[-1]) if len(found) > limit else None)


def whatever_became_of_it(query: Callable[[sqlite3.Connection], T], connection: sqlite3.Connection) -> T:
    """A query's answer with damaged rows as far as they can be read."""
    with cells.leniently(connection):
        return query(connection)


def _heads(connection: sqlite3.Connection, statement: str, given: Sequence[object]) -> list[SessionRecord]:
    rows = _rows(connection, statement, given, None)
    if all(map(cells.is_head, rows)):
        return [SessionRecord(*row) for row in rows]
    if cells.is_lenient(connection):
        return [cells.head(row) for row in rows]
    raise cells.DamagedCells(None)


def entries_in(
    connection: sqlite3.Connection, rows: Sequence[Sequence[Any]], asked: cells.Page
) -> list[StoredEntry]:
    """Entries out of rows of (turn id, key, kind, payload, seq). asked: what they were read for."""
    if all(map(cells.is_entry, rows)):
        return [StoredEntry(*row) for row in rows]
    if cells.is_lenient(connection):
        return [cells.entry(row) for row in rows]
    raise cells.DamagedCells(asked)


def _rows(
    connection: sqlite3.Connection, statement: str, given: Sequence[object], asked: cells.Page | None
) -> list[Any]:
    try:
        return connection.execute(statement, given).fetchall()
    except sqlite3.OperationalError as error:
        if cells.is_undecodable(error):
            raise cells.DamagedCells(asked) from error
        raise
