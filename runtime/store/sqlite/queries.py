"""Reading: SQL in, values of the Store port out, also of cells that are damaged. Knows no file, no thread.

SQLite keeps what it is given: a flipped bit makes a text that is no UTF-8, another program stores a blob in a
column of text. Rows are read strictly, which costs nothing, and raise DamagedCells; whoever meets one has it
mended and reads leniently from then on, so that one row never hides the others.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from runtime.store.common.faults import Place, encode, text
from runtime.store.sqlite import shared_entries
from runtime.store.sqlite.schema import LAST_SEQ, SESSION_COLUMNS
from runtime.store.sqlite.shared_entries import rows, segments_of
from runtime.values.stored import SessionPage, SessionRecord, StoredEntry

LONG_AGO = "1970-01-01T00:00:00Z"
"""The time of a change of which nothing is known."""
_UNDECODABLE = "Could not decode to UTF-8"


class Page(NamedTuple):
    """Entries of a session that were to be read: at most `limit` behind seq `after`."""

    session_id: str
    after: int
    limit: int


class DamagedCells(Exception):
    """Something that was read is damaged. page: of entries; None: heads."""

    def __init__(self, page: Page | None) -> None:
        super().__init__("a row of the session store is damaged")
        self.page = page


def lenient(raw: bytes) -> str:
    """A text as far as it can be read. As `text_factory` of a connection: damaged rows are read as well."""
    return raw.decode("utf-8", "replace")


def is_lenient(connection: sqlite3.Connection) -> bool:
    """Whether damaged rows are read."""
    return connection.text_factory is lenient


@contextmanager
def leniently(connection: sqlite3.Connection) -> Iterator[None]:
    """Read damaged rows as well, as far as they can be read."""
    before, connection.text_factory = connection.text_factory, lenient
    try:
        yield
    finally:
        connection.text_factory = before


def is_undecodable(error: sqlite3.Error) -> bool:
    """Whether a strict read met a text that is no UTF-8."""
    return isinstance(error, sqlite3.OperationalError) and _UNDECODABLE in str(error)


def is_head(row: Sequence[object]) -> bool:
    """Whether the cells of a session's head are of their types, and it has an id."""
    *texts, title, state = row
    typed = all(type(cell) is str for cell in (*texts, state)) and (title is None or type(title) is str)
    return typed and row[0] != ""


def head(row: Sequence[object], instead: str = "unnamed") -> SessionRecord:
    """A head out of any cells. instead: the id of one that has none.

    A folder or a time of another type says nothing; a damaged time is the other one, if that is whole.
    """
    session_id, cwd, created_at, updated_at, title, state = row
    created, updated = time(created_at), time(updated_at)
    return SessionRecord(
        text(session_id) or instead,
        text(cwd) if isinstance(cwd, str | bytes) and cwd else "/",
        created or updated or LONG_AGO,
        updated or created or LONG_AGO,
        None if title is None else text(title),
        text(state) or "{}",
    )


def time(cell: object) -> str:
    """A time as it is stored; '' for what cannot be one."""
    found = text(cell) if isinstance(cell, str | bytes) else ""
    return found if found.isascii() and found.isprintable() else ""


def is_entry(row: Sequence[object]) -> bool:
    """Whether the cells of an entry (turn id, key, kind, payload, seq) are of their types."""
    turn_id, key, kind, payload = row[:4]
    return type(turn_id) is str and type(key) is str and type(kind) is str and type(payload) is bytes


def entry(row: Sequence[object]) -> StoredEntry:
    """An entry out of any cells, its seq aside."""
    turn_id, key, kind, payload, seq = row
    assert isinstance(seq, int), "part of the row id"
    return StoredEntry(text(turn_id), text(key), text(kind), content(payload), seq)


def content(cell: object) -> bytes:
    """A cell of the column of payloads."""
    return cell if isinstance(cell, bytes) else text(cell).encode("utf-8", "replace")


T = TypeVar("T")

_SESSION = f"SELECT {SESSION_COLUMNS} FROM sessions WHERE session_id = ?"
_LIST = "SELECT {columns} FROM sessions {where} ORDER BY updated_at DESC, session_id DESC LIMIT ?"


def session(connection: sqlite3.Connection, session_id: str) -> SessionRecord | None:
    """One session's head."""
    found = _heads(connection, _SESSION, (session_id,))
    return found[0] if found else None


def entries(connection: sqlite3.Connection, session_id: str, after: int, limit: int) -> list[StoredEntry]:
    """Entries with seq > after, at most `limit`."""
    asked = Page(session_id, min(max(after, 0), LAST_SEQ), max(limit, 0))
    parts = segments_of(connection, session_id)
    with _noticing(asked):
        found = list(rows(connection, parts, asked.after, asked.limit))
    if all(map(is_entry, found)):
        return [StoredEntry(*row) for row in found]
    if is_lenient(connection):
        return [entry(row) for row in found]
    raise DamagedCells(asked)


def position(connection: sqlite3.Connection, session_id: str, key: str) -> int | None:
    """The number of the entry with that key."""
    return shared_entries.position(connection, segments_of(connection, session_id), key)


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
    with leniently(connection):
        return query(connection)


def _heads(connection: sqlite3.Connection, statement: str, given: Sequence[object]) -> list[SessionRecord]:
    with _noticing(None):
        found = connection.execute(statement, given).fetchall()
    if all(map(is_head, found)):
        return [SessionRecord(*row) for row in found]
    if is_lenient(connection):
        return [head(row) for row in found]
    raise DamagedCells(None)


@contextmanager
def _noticing(asked: Page | None) -> Iterator[None]:
    """A text that is no UTF-8 is damage of what was asked for."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if is_undecodable(error):
            raise DamagedCells(asked) from error
        raise
