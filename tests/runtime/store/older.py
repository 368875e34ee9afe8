"""Store files of older versions, as those versions made them. Knows no pytest."""

import sqlite3
from contextlib import closing
from pathlib import Path

from runtime.store.sqlite.schema import MIGRATIONS

VERSION_1 = """
    PRAGMA journal_mode = WAL;
    BEGIN;
    CREATE TABLE sessions (
        session_id TEXT NOT NULL PRIMARY KEY,
        cwd TEXT NOT NULL,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        title TEXT,
        state TEXT NOT NULL
    );
    CREATE INDEX sessions_by_change ON sessions (updated_at, session_id);
    CREATE INDEX sessions_by_cwd ON sessions (cwd, updated_at, session_id);
    CREATE TABLE entries (
        session_id TEXT NOT NULL,
        seq INTEGER NOT NULL,
        turn_id TEXT NOT NULL,
        key TEXT NOT NULL,
        kind TEXT NOT NULL,
        payload BLOB NOT NULL,
        PRIMARY KEY (session_id, seq),
        UNIQUE (session_id, key)
    );
    PRAGMA application_id = 1464620117;
    PRAGMA user_version = 1;
    COMMIT;
"""


def make_version_1(path: Path, *, sessions: int = 3, entries: int = 200) -> None:
    """Sessions s0, s1, … with entries k0, k1, …, written in turn, as several windows do."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(VERSION_1)
        connection.execute("BEGIN")
        for number in reversed(range(sessions)):
            head = (f"s{number}", "/w", "2026-01-01T00:00:00Z", f"2026-01-01T00:00:{number:02}Z", "T ✓", "{}")
            connection.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?)", head)
        for step in range(entries):
            for number in range(sessions):
                row = (f"s{number}", step + 1, "t1", f"k{step}", "reply", f"{number}:{step}".encode() * 40)
                connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", row)
        connection.execute("COMMIT")


def version_of(path: Path) -> int:
    """The schema version of a file that nobody writes."""
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


VERSION_2_SESSION = (
    "INSERT INTO sessions (number, session_id, cwd, created_at, updated_at, title, state)"
    " VALUES (?, ?, '/w', '2026-01-01T00:00:00Z', ?, 'T ✓', '{}')"
)


def make_version_2(path: Path, *, sessions: int = 3, entries: int = 200) -> None:
    """The same content as a file of version 2 has it: with a lease, and one session that was searched."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN")
        for step in MIGRATIONS[:2]:
            step(connection)
        for number in range(sessions):
            connection.execute(
                VERSION_2_SESSION, (number + 1, f"s{number}", f"2026-01-01T00:00:{number:02}Z")
            )
            for place in range(entries):
                payload = f"{number}:{place}".encode() * 40
                row = ((number + 1) << 32 | place + 1, "t1", f"k{place}", "reply", payload)
                connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", row)
        connection.execute("INSERT INTO leases VALUES (1, 7, '', '', 0)")
        connection.execute("INSERT INTO recalls VALUES (1, 0, 1)")
        connection.execute("PRAGMA user_version = 2")
        connection.execute("COMMIT")
