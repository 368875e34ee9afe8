"""The tables and how an older file becomes a current one. Knows SQL, no file and no thread."""

import sqlite3
from collections.abc import Callable

APPLICATION_ID = 0x574C5455
"""Marks a database as ours in its header, https://sqlite.org/fileformat2.html#application_id."""

SESSION_COLUMNS = "session_id, cwd, created_at, updated_at, title, state"
ENTRY_COLUMNS = "session_id, seq, turn_id, key, kind, payload"

_FIRST_TABLES = (
    """CREATE TABLE sessions (
        session_id TEXT NOT NULL PRIMARY KEY,
        cwd TEXT NOT NULL,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        title TEXT,
        state TEXT NOT NULL
    )""",
    "CREATE INDEX sessions_by_change ON sessions (updated_at, session_id)",
    "CREATE INDEX sessions_by_cwd ON sessions (cwd, updated_at, session_id)",
    # A row-id table: a payload of 2 kB stays in one leaf, and a damaged file can be read row by row.
    """CREATE TABLE entries (
        session_id TEXT NOT NULL,
        seq INTEGER NOT NULL,
        turn_id TEXT NOT NULL,
        key TEXT NOT NULL,
        kind TEXT NOT NULL,
        payload BLOB NOT NULL,
        PRIMARY KEY (session_id, seq),
        UNIQUE (session_id, key)
    )""",
    f"PRAGMA application_id = {APPLICATION_ID}",
)


def _create_tables(connection: sqlite3.Connection) -> None:
    for statement in _FIRST_TABLES:
        connection.execute(statement)


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (_create_tables,)
"""Step n turns a file of version n into version n + 1. Steps are only ever added at the end."""

SCHEMA_VERSION = len(MIGRATIONS)


def read_version(connection: sqlite3.Connection) -> int:
    """The file's schema version; 0 in a new file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def is_foreign(connection: sqlite3.Connection) -> bool:
    """Whether the database belongs to some other program."""
    owner = int(connection.execute("PRAGMA application_id").fetchone()[0])
    if owner or read_version(connection):
        return owner != APPLICATION_ID
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the file to SCHEMA_VERSION in one transaction; nothing changes when a step fails."""
    if read_version(connection) == SCHEMA_VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Read again: another process may have been here while this one waited for the lock.
        for step in MIGRATIONS[read_version(connection) :]:
            step(connection)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
