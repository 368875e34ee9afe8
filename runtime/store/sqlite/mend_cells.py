"""Finds damaged cells in heads and entries and puts them right. Knows SQL, no thread and no transaction.

What cannot be read of a text becomes U+FFFD; what other cells of the row still know is taken from them.
"""

import logging
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import orjson

from runtime.store.common.faults import text
from runtime.store.sqlite import queries
from runtime.store.sqlite.schema import LAST_SEQ, SESSION_COLUMNS
from runtime.store.sqlite.shared_entries import segments_of
from runtime.values.stored import SessionRecord, StoredEntry

log = logging.getLogger("wholeturn.store")

HEAD_COLUMNS = tuple(SESSION_COLUMNS.split(", "))
ENTRY_COLUMNS = ("turn_id", "key", "kind", "payload")
_SHOWN_BYTES = 80
_MOST_TOLD = 5
_TITLE = ("text", "null")


def _raw(columns: Sequence[str]) -> str:
    """SQL for the bytes and the type of each column: no cell is too damaged to be read so."""
    return ", ".join(f"CAST({name} AS BLOB), typeof({name})" for name in columns)


_HEADS = f"SELECT number, {_raw(HEAD_COLUMNS)} FROM sessions"
_MEND_HEAD = f"UPDATE sessions SET ({SESSION_COLUMNS}) = (?, ?, ?, ?, ?, ?) WHERE number = ?"
_ENTRIES = f"SELECT place, {_raw(ENTRY_COLUMNS)} FROM entries WHERE place > ? AND place <= ? ORDER BY place"
_PAGE_END = (
    "SELECT count(*), max(place) FROM"
    " (SELECT place FROM entries WHERE place > ? AND place <= ? ORDER BY place LIMIT max(?, 0))"
)
_MEND_ENTRY = "UPDATE entries SET (turn_id, key, kind, payload) = (?, ?, ?, ?) WHERE place = ?"
_LAST_PLACE = (1 << 63) - 1


class Damaged(NamedTuple):
    """A row with damaged cells. place: its row id. columns: their names. found: all cells, raw."""

    place: int
    columns: tuple[str, ...]
    found: tuple[object, ...]


def damaged_heads(connection: sqlite3.Connection) -> Iterator[Damaged]:
    """Heads of which some cells are damaged."""
    kinds = tuple(_TITLE if name == "title" else ("text",) for name in HEAD_COLUMNS)
    return _damaged(connection.execute(_HEADS), HEAD_COLUMNS, kinds)


def damaged_entries(
    connection: sqlite3.Connection, after: int = 0, last: int = _LAST_PLACE
) -> Iterator[Damaged]:
    """The same of entries, with a place behind `after` up to `last`."""
    kinds = (*[("text",)] * 3, ("blob",))
    return _damaged(connection.execute(_ENTRIES, (after, last)), ENTRY_COLUMNS, kinds)


def mend(connection: sqlite3.Connection, page: queries.Page | None) -> list[str]:
    """Put right what a read met; what it was. page: of entries; None: heads."""
    if page is None:
        return mend_heads(connection)
    told: list[str] = []
    left = page.limit
    for part in reversed(segments_of(connection, page.session_id)):
        after, last = part.places(page.after)
        count, end = connection.execute(_PAGE_END, (after, last, left)).fetchone()
        left -= count
        told += mend_entries(connection, after, end) if count else []
    return told


def mend_heads(connection: sqlite3.Connection) -> list[str]:
    """Put all damaged heads right; what they were."""
    told: list[str] = []
    for row in list(damaged_heads(connection)):
        head = queries.head(row.found, f"recovered-{row.place}")
        if _update(connection, _MEND_HEAD, head, row.place, at=0):
            told.append(named_head(row))
            _note("sessions", row)
    return told


def mend_entries(connection: sqlite3.Connection, after: int, last: int) -> list[str]:
    """Put damaged entries right, those with a place behind `after` up to `last`; what they were."""
    told: list[str] = []
    for row in list(damaged_entries(connection, after, last)):
        entry = mended(queries.entry((*row.found, row.place & LAST_SEQ)), row.columns)
        if _update(connection, _MEND_ENTRY, entry[:4], row.place, at=1):
            told.append(named_entry(row))
            _note("entries", row)
    return told


def mended_text(path: Path, told: Sequence[str]) -> str:
    """What a person is told."""
    return (
        f"Rows of the session store {path} were damaged and have been mended as far as they could be read:"
        f" {listed(told)}."
    )


def listed(names: Sequence[str]) -> str:
    """Some of the names, and how many more there are."""
    more = f" and {len(names) - _MOST_TOLD} more" if len(names) > _MOST_TOLD else ""
    return f"{', '.join(names[:_MOST_TOLD])}{more}"


def named_head(row: Damaged) -> str:
    """A session and what of its head is damaged."""
    return f"session {queries.head(row.found).session_id} ({', '.join(row.columns)})"


def named_entry(row: Damaged) -> str:
    """A step and what of it is damaged."""
    return f"step {text(row.found[1])} ({', '.join(row.columns)})"


def mended(entry: StoredEntry, damaged: Sequence[str]) -> StoredEntry:
    """An entry with what its other cells know of the damaged ones: turn, key and payload name each other."""
    parts = entry.key.split(":")
    of_turn = parts[0] == "turn" and len(parts) > 1 and bool(entry.turn_id)
    if "turn_id" in damaged and of_turn and "key" not in damaged:
        entry = entry._replace(turn_id=parts[1])
    elif "key" in damaged and of_turn and "turn_id" not in damaged:
        entry = entry._replace(key=":".join(["turn", entry.turn_id, *parts[2:]]))
    if "kind" in damaged:
        with suppress(ValueError, AttributeError):
            kind = orjson.loads(entry.payload).get("kind")
            entry = entry._replace(kind=kind) if isinstance(kind, str) else entry
    return entry


def _damaged(
    rows: sqlite3.Cursor, columns: Sequence[str], kinds: Sequence[Sequence[str]]
) -> Iterator[Damaged]:
    for place, *found in rows:
        pairs = list(zip(found[::2], found[1::2], kinds, strict=True))
        bad = [not _is_sound(raw, kind, wanted) for raw, kind, wanted in pairs]
        bad[0] = bad[0] or (columns is HEAD_COLUMNS and found[0] == b"")  # nobody can ask for it by its id
        if any(bad):
            names = tuple(name for name, is_bad in zip(columns, bad, strict=True) if is_bad)
            raws = (_cell(raw, kind) for raw, kind, _ in pairs)
            yield Damaged(place, names, tuple(raws))


def _is_sound(raw: bytes | None, kind: str, wanted: Sequence[str]) -> bool:
    if kind not in wanted:
        return False
    if kind == "text" and raw is not None:
        try:
            raw.decode()
        except UnicodeDecodeError:
            return False
    return True


def _cell(raw: bytes | None, kind: str) -> object:
    """A cell as it was: a number stays one, so that it is not taken for a text."""
    if raw is None or kind in ("text", "blob"):
        return raw
    return int(raw) if kind == "integer" else float(raw)


def _update(
    connection: sqlite3.Connection,
    statement: str,
    row: SessionRecord | tuple[object, ...],
    place: int,
    at: int,
) -> bool:
    """Write a row; when its name is taken, under one with its number. at: where in the row the name is."""
    cells_now = list(row)
    try:
        return bool(connection.execute(statement, (*cells_now, place)).rowcount)
    except sqlite3.IntegrityError:
        cells_now[at] = f"{cells_now[at]}~{place & LAST_SEQ}"
        return bool(connection.execute(statement, (*cells_now, place)).rowcount)


def _note(table: str, row: Damaged) -> None:
    """What was there, for who wants to know it: the mended cell does not have it any more."""
    shown = [cell[:_SHOWN_BYTES] if isinstance(cell, bytes) else cell for cell in row.found]
    log.warning("mended row %d of %s, damaged in %s: %r", row.place, table, ", ".join(row.columns), shown)
