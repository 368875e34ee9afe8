"""Builds a sound store file out of what can still be read of a damaged one. Knows no thread and no lock.

The caller makes sure that nobody has the file open. The damaged file is kept beside the new one,
byte by byte, as `<name>.corrupt-<n>`.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any

from runtime.store.common.faults import text
from runtime.store.sqlite.connection import connect, open_for_writing
from runtime.store.sqlite.queries import LONG_AGO, content, head, lenient
from runtime.store.sqlite.schema import (
    ENTRY_COLUMNS,
    LAST_NUMBER,
    LAST_SEQ,
    SEQ_BITS,
    SESSION_COLUMNS,
    SHARED_COLUMNS,
    read_version,
)
from runtime.values.file_access import opened, reading, writing

_CHUNK = 1 << 20
_NEAR_STEPS = 256
"""More rows than a leaf can hold."""
_LAST_ROW_ID = (1 << 62) - 1

Cells = tuple[object, ...]


def rebuild(path: Path, *, timeout: float) -> str:
    """Put a sound file in the damaged one's place and tell what was kept, in a sentence.

    Raises OSError, sqlite3.Error or StoreTrouble; the damaged file is then still in its place.
    """
    aside = _copy_aside(path)
    fresh = path.with_name(path.name + ".rescue")
    try:
        _remove(fresh)
        with closing(open_for_writing(fresh, timeout=timeout)) as target:
            sessions, entries = _rescue(path, target, timeout)
        _replace(path, fresh)
    except BaseException:
        _remove(fresh)
        _remove(aside)
        raise
    return (
        f"The session store {path} was damaged. {sessions} sessions and {entries} entries could be read"
        f" and were kept; the damaged file is {aside}."
    )


def _copy_aside(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.corrupt-{number}") for number in count(1))
    aside = next(name for name in names if not name.exists())
    try:
        for suffix in ("", "-wal"):
            with suppress(FileNotFoundError):
                _copy(f"{path}{suffix}", f"{aside}{suffix}")
    except OSError:
        _remove(aside)
        raise
    return aside


def _copy(source: str, target: str) -> None:
    with reading(source) as reader, writing(target, os.O_CREAT | os.O_EXCL, 0o600) as writer:
        while chunk := reader.read(_CHUNK):
            writer.write(chunk)
        writer.flush()
        os.fsync(writer.fileno())


def _rescue(path: Path, target: sqlite3.Connection, timeout: float) -> tuple[int, int]:
    target.execute("BEGIN IMMEDIATE")
    try:
        with closing(connect(path, timeout)) as source:
            source.text_factory = lenient
            # Else SQLite refuses a file that is shorter than its header says, all of it.
            source.execute("PRAGMA writable_schema = ON")
            sessions = _rescue_sessions(source, target)
            _rescue_shares(source, target)
            entries = _rescue_entries(source, target)
    except sqlite3.Error:
        # The file is so far gone that it cannot even be closed in order; what was read stands.
        sessions, entries = _counted(target)
    target.execute("COMMIT")
    target.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return sessions, entries


_KEEP_SESSION = f"INSERT OR IGNORE INTO sessions (number, {SESSION_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"
_KEEP_SHARE = f"INSERT OR IGNORE INTO shared ({SHARED_COLUMNS}) VALUES (?, ?, ?)"
_COPIES_WITHOUT_HEAD = (
    "SELECT session FROM shared WHERE session NOT IN (SELECT number FROM sessions)"
    " AND session NOT IN (SELECT source FROM shared)"
)
_REACHES = "SELECT source, max(up_to) FROM shared GROUP BY source"
_KEEP_ENTRY = f"INSERT OR IGNORE INTO entries ({ENTRY_COLUMNS}) VALUES (?, ?, ?, ?, ?)"


def _rescue_sessions(source: sqlite3.Connection, target: sqlite3.Connection) -> int:
    """All heads that can be read. Of the others an index may still know id, folder and time."""
    heads = _readable(source, "sessions", f"rowid, {SESSION_COLUMNS}")
    kept = sum(target.execute(_KEEP_SESSION, row).rowcount for row in map(_session, heads) if row)
    for row in map(_session, _indexed_heads(source)):
        if row:
            target.execute(_KEEP_SESSION, row)
    return kept


def _indexed_heads(source: sqlite3.Connection) -> Iterator[Cells]:
    """What the index has of each head, made into a head. Read from both ends, up to what is damaged."""
    for order in ("", " DESC"):
        statement = (
            "SELECT rowid, session_id, cwd, updated_at FROM sessions INDEXED BY sessions_by_cwd"
            f" ORDER BY cwd{order}, updated_at{order}, session_id{order}"
        )
        with suppress(sqlite3.DatabaseError):
            for number, session_id, cwd, changed in source.execute(statement):
                yield (number, session_id, cwd, changed, changed, "Recovered session", "{}")


def _rescue_shares(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    """Who shares whose entries. Checkpoints are not kept: they may know of entries that are lost."""
    if read_version(source) < 3:
        return
    for row in _readable(source, "shared", SHARED_COLUMNS):
        if all(isinstance(cell, int) and cell > 0 for cell in row):
            target.execute(_KEEP_SHARE, row)
    # A copy whose own head was lost: without one nobody could reach what it shares.
    for (number,) in target.execute(_COPIES_WITHOUT_HEAD).fetchall():
        _make_head(target, number)


def _rescue_entries(source: sqlite3.Connection, target: sqlite3.Connection) -> int:
    """All entries that can be read. One whose head was lost gets a new one, else nobody could reach it."""
    numbers: dict[object, int] = dict(target.execute("SELECT session_id, number FROM sessions"))
    # Up to that seq the entries of a deleted session are those of its copies, and need no head.
    reaches: dict[int, int] = dict(target.execute(_REACHES))
    known = sorted({*numbers.values(), *reaches})
    numbers.update((number, number) for number in numbers.copy().values())
    kept = 0
    for owner, seq, *rest in _entries(source, known):
        number = owner if seq <= reaches.get(owner, 0) else numbers.get(owner)
        if number is None:
            number = numbers[owner] = _make_head(target, owner)
        kept += target.execute(_KEEP_ENTRY, (number << SEQ_BITS | seq, *rest)).rowcount
    return kept


def _make_head(target: sqlite3.Connection, owner: object) -> int:
    given, name = (owner, f"recovered-{owner}") if isinstance(owner, int) else (None, owner)
    row = (given, name, "/", LONG_AGO, LONG_AGO, "Recovered session", "{}")
    return target.execute(_KEEP_SESSION, row).lastrowid or 0


def _entries(source: sqlite3.Connection, known: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """(session's number or id, seq, turn id, key, kind, payload), from a file of any version."""
    if read_version(source) < 2:
        columns = "session_id, seq, turn_id, key, kind, payload"
        yield from (row for row in map(_entry, _readable(source, "entries", columns)) if row)
        return
    columns = f"place >> {SEQ_BITS}, place & {LAST_SEQ}, turn_id, key, kind, payload"
    for after, last in _ranges(known):
        rows = _readable(source, "entries", columns, after, last)
        yield from (row for row in map(_entry, rows) if row)


def _ranges(known: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Row ids of each session by itself, and those between: from a hole in one a step to the next is far."""
    after = 0
    for number in known:
        first = number << SEQ_BITS
        yield after, first
        after = first | LAST_SEQ
        yield first, after
    yield after, _LAST_ROW_ID


def _counted(target: sqlite3.Connection) -> tuple[int, int]:
    sessions = target.execute("SELECT count(*) FROM sessions").fetchone()[0]
    return sessions, target.execute("SELECT count(*) FROM entries").fetchone()[0]


def _readable(
    source: sqlite3.Connection, table: str, columns: str, after: int = 0, last: int = _LAST_ROW_ID
) -> Iterator[Cells]:
    """Every row that can be read, in row-id order, with the unreadable ones stepped over."""
    statement = f"SELECT rowid, {columns} FROM {table} WHERE rowid > ? AND rowid <= ? ORDER BY rowid"

    def fails(place: int) -> bool:
        try:
            source.execute(f"{statement} LIMIT 1", (place, last)).fetchone()
        except sqlite3.DatabaseError:
            return True
        return False

    while after < last:
        try:
            for row in source.execute(statement, (after, last)):
                after = row[0]
                yield row[1:]
            return
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
                return  # no table or no database at all: stepping on would find nothing
            after = _behind(fails, after, last)


def _behind(fails: Callable[[int], bool], place: int, last: int) -> int:
    """The nearest place behind `place` from which on something can be read; `last` if there is none.

    One by one over the rows of a leaf; beyond that by doubling and halving, as more than a leaf is gone.
    """
    for near in range(place + 1, min(place + _NEAR_STEPS, last)):
        if not fails(near):
            return near
    low, step = place + _NEAR_STEPS, _NEAR_STEPS
    while low < last and fails(low):
        step *= 2
        low += step
    bad, good = low - step, min(low, last)
    while good - bad > 1:
        middle = (bad + good) // 2
        bad, good = (middle, good) if fails(middle) else (bad, middle)
    return good


def _session(row: Cells) -> Cells | None:
    """A head with cells of the types that are meant; None without a number to find its entries by."""
    number, *cells = row
    if not isinstance(number, int) or not 0 < number <= LAST_NUMBER:
        return None
    return (number, *head(cells, f"recovered-{number}"))


def _entry(row: Cells) -> Cells | None:
    """The same of an entry; None when it does not say whose it is."""
    owner, seq, turn_id, key, kind, payload = row
    if not isinstance(owner, str | int) or not isinstance(seq, int):
        return None
    return (owner, seq, text(turn_id), text(key), text(kind), content(payload))


def _replace(path: Path, fresh: Path) -> None:
    # A stale log beside a new database would be played into it: it goes first (it is kept aside).
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    fresh.replace(path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    with suppress(OSError), opened(folder) as descriptor:
        os.fsync(descriptor)


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
