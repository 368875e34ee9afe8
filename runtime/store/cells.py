"""What a cell of the tables says, whatever became of it. Knows the types that are meant, no SQL.

SQLite keeps what it is given: a flipped bit makes a text that is no UTF-8, another program stores a blob in a
column of text. Rows are read strictly, which costs nothing; whoever finds one damaged has it mended and reads
leniently from then on, so that one row never hides the others.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from runtime.stored import SessionRecord, StoredEntry

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


def text(cell: object) -> str:
    """A cell of a column of text."""
    if isinstance(cell, bytes):
        return lenient(cell)
    return cell if isinstance(cell, str) else "" if cell is None else str(cell)


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
