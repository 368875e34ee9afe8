"""The tables and how an older file becomes a current one. Knows SQL, no file and no thread.

An entry's `place` is its session's number and its own: number << 32 | seq. As the row id it keeps a session's
entries together in order without an index, a payload of 2 kB stays in one leaf, and a damaged file can be
read row by row. So a commit changes two trees: the table and the index of the keys.
"""

import sqlite3
from collections.abc import Callable

APPLICATION_ID = 0x574C5455
"""Marks a database as ours in its header, https://sqlite.org/fileformat2.html#application_id."""

SESSION_COLUMNS = "session_id, cwd, created_at, updated_at, title, state"
ENTRY_COLUMNS = "place, turn_id, key, kind, payload"
SHARED_COLUMNS = "session, source, up_to"

SEQ_BITS = 32
LAST_SEQ = (1 << SEQ_BITS) - 1
"""A session holds no more entries than this; as a mask it takes the seq out of a place."""
LAST_NUMBER = 1 << 30
"""No session's number is larger: with it in front a place is still a row id."""

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

_NUMBERED_SESSIONS = (
    "DROP INDEX sessions_by_change",
    "DROP INDEX sessions_by_cwd",
    "ALTER TABLE sessions RENAME TO old_sessions",
    "ALTER TABLE entries RENAME TO old_entries",
    """CREATE TABLE sessions (
        number INTEGER PRIMARY KEY,
        session_id TEXT NOT NULL UNIQUE,
        cwd TEXT NOT NULL,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        title TEXT,
        state TEXT NOT NULL
    )""",
    """CREATE TABLE entries (
        place INTEGER PRIMARY KEY,
        turn_id TEXT NOT NULL,
        key TEXT NOT NULL,
        kind TEXT NOT NULL,
        payload BLOB NOT NULL
    )""",
    f"""INSERT INTO sessions ({SESSION_COLUMNS})
        SELECT {SESSION_COLUMNS} FROM old_sessions ORDER BY rowid""",
    # In the order of the new row ids, and read through the old key: nothing is sorted, memory stays flat.
    f"""INSERT INTO entries ({ENTRY_COLUMNS})
        SELECT head.number << {SEQ_BITS} | old.seq, old.turn_id, old.key, old.kind, old.payload
        FROM sessions AS head CROSS JOIN old_entries AS old ON old.session_id = head.session_id
        ORDER BY head.number, old.seq""",
    "DROP TABLE old_entries",
    "DROP TABLE old_sessions",
    "CREATE INDEX sessions_by_change ON sessions (updated_at, session_id)",
    "CREATE INDEX sessions_by_cwd ON sessions (cwd, updated_at, session_id)",
    f"CREATE UNIQUE INDEX entries_by_key ON entries (place >> {SEQ_BITS}, key)",
)

_LEASES_AND_RECALLS = (
    # Who may write a session. The fence only ever grows; a lease that is free keeps it.
    """CREATE TABLE leases (
        session INTEGER PRIMARY KEY,
        fence INTEGER NOT NULL,
        holder TEXT NOT NULL,
        owner TEXT NOT NULL,
        expires_at REAL NOT NULL
    )""",
    # How far the words of a session are indexed; the index itself is a table of its own, see `recall`.
    """CREATE TABLE recalls (
        session INTEGER PRIMARY KEY,
        seq INTEGER NOT NULL,
        used INTEGER NOT NULL
    )""",
)


_COPIES_AND_CHECKPOINTS = (
    # A copy's entries up to a seq are those of another number: see `segments`.
    """CREATE TABLE shared (
        session INTEGER PRIMARY KEY,
        source INTEGER NOT NULL,
        up_to INTEGER NOT NULL
    )""",
    "CREATE INDEX shared_by_source ON shared (source)",
    # What was made of a session's entries behind seq `after` up to the one of its place, to be had at once.
    """CREATE TABLE checkpoints (
        place INTEGER PRIMARY KEY,
        after INTEGER NOT NULL,
        key TEXT NOT NULL,
        value BLOB NOT NULL
    )""",
)


def _running(statements: tuple[str, ...]) -> Callable[[sqlite3.Connection], None]:
    def step(connection: sqlite3.Connection) -> None:
        for statement in statements:
            connection.execute(statement)

    return step


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (
    _running(_FIRST_TABLES),
    _running(_NUMBERED_SESSIONS + _LEASES_AND_RECALLS),
    _running(_COPIES_AND_CHECKPOINTS),
)
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
