"""Builds a sound store file out of what can still be read of a damaged one. Knows no thread and no lock.

The caller makes sure that nobody has the file open. The damaged file is kept beside the new one,
byte by byte, as `<name>.corrupt-<n>`.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path

from runtime.store.connection import open_for_writing
from runtime.store.schema import ENTRY_COLUMNS, SESSION_COLUMNS

_CHUNK = 1 << 20
_BLIND_STEPS = 5_000
"""Row ids to try behind the last readable one when the table's far end is damaged too."""

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
    def private(name: str, flags: int) -> int:
        return os.open(name, flags, 0o600)

    with open(source, "rb") as reader, open(target, "xb", opener=private) as writer:
        while chunk := reader.read(_CHUNK):
            writer.write(chunk)
        writer.flush()
        os.fsync(writer.fileno())


def _rescue(path: Path, target: sqlite3.Connection, timeout: float) -> tuple[int, int]:
    target.execute("BEGIN IMMEDIATE")
    try:
        with closing(sqlite3.connect(path, timeout=timeout, isolation_level=None)) as source:
            source.text_factory = _readable_text
            # Else SQLite refuses a file that is shorter than its header says, all of it.
            source.execute("PRAGMA writable_schema = ON")
            heads = _readable(source, "sessions", SESSION_COLUMNS)
            sessions = sum(_keep(target, _KEEP_SESSION, row) for row in heads if _is_session(row))
            lines = _readable(source, "entries", ENTRY_COLUMNS)
            entries = sum(_keep(target, _KEEP_ENTRY, row) for row in lines if _is_entry(row))
    except sqlite3.Error:
        # The file is so far gone that it cannot even be closed in order; what was read stands.
        sessions, entries = _counted(target)
    target.execute(_KEEP_ORPHANS)
    target.execute("COMMIT")
    target.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return sessions, entries


_KEEP_SESSION = f"INSERT OR IGNORE INTO sessions ({SESSION_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
_KEEP_ENTRY = f"INSERT OR IGNORE INTO entries ({ENTRY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
# Entries whose head was lost get a new one, else nobody could reach them.
_KEEP_ORPHANS = f"""
    INSERT INTO sessions ({SESSION_COLUMNS})
    SELECT DISTINCT session_id, '/', '1970-01-01T00:00:00Z', '1970-01-01T00:00:00Z',
        'Recovered session', '{{}}'
    FROM entries WHERE session_id NOT IN (SELECT session_id FROM sessions)"""


def _keep(target: sqlite3.Connection, statement: str, row: Cells) -> int:
    return target.execute(statement, row).rowcount


def _counted(target: sqlite3.Connection) -> tuple[int, int]:
    sessions = target.execute("SELECT count(*) FROM sessions").fetchone()[0]
    return sessions, target.execute("SELECT count(*) FROM entries").fetchone()[0]


def _readable(source: sqlite3.Connection, table: str, columns: str) -> Iterator[Cells]:
    """Every row that can be read, in row-id order, with the unreadable ones stepped over."""
    statement = f"SELECT rowid, {columns} FROM {table} WHERE rowid > ? ORDER BY rowid"
    end = _last_row_id(source, table)
    place = 0
    while end is None or place < end:
        try:
            for row in source.execute(statement, (place,)):
                place = row[0]
                yield row[1:]
            return
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
                return  # no table or no database at all: stepping on would find nothing
            if end is None:
                end = place + _BLIND_STEPS
            place += 1


def _last_row_id(source: sqlite3.Connection, table: str) -> int | None:
    try:
        found = source.execute(f"SELECT max(rowid) FROM {table}").fetchone()[0]
    except sqlite3.DatabaseError:
        return None
    return int(found or 0)


def _is_session(row: Cells) -> bool:
    *texts, title, state = row
    return all(isinstance(cell, str) for cell in (*texts, state)) and isinstance(title, str | None)


def _is_entry(row: Cells) -> bool:
    session_id, seq, turn_id, key, kind, payload = row
    texts = (session_id, turn_id, key, kind)
    return (
        all(isinstance(cell, str) for cell in texts) and isinstance(seq, int) and isinstance(payload, bytes)
    )


def _readable_text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _replace(path: Path, fresh: Path) -> None:
    # A stale log beside a new database would be played into it: it goes first (it is kept aside).
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    fresh.replace(path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
