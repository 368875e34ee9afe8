"""What the store tests share: records, entries, damage, and other processes. Knows no pytest."""

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runtime.values.stored import SessionRecord, Store, StoredEntry

ROOT = Path(__file__).resolve().parents[3]


def record(session_id: str = "s1", *, second: int = 0) -> SessionRecord:
    """A session in /w, changed at that second."""
    changed = f"2026-01-01T00:00:{second:02}Z"
    return SessionRecord(session_id, "/w", "2026-01-01T00:00:00Z", changed)


def entry(key: str, payload: bytes = b"{}") -> StoredEntry:
    """An entry with that key."""
    return StoredEntry("t1", key, "reply", payload)


async def keys(store: Store, session_id: str = "s1") -> list[str]:
    """All keys of a session in order."""
    found: list[StoredEntry] = []
    while page := await store.entries(session_id, after=found[-1].seq if found else 0):
        found += page
    return [line.key for line in found]


async def fill(store: Store, *, sessions: int = 3, entries: int = 200, size: int = 300) -> None:
    """Sessions s0, s1, … with entries k0, k1, … of `size` bytes."""
    for number in range(sessions):
        await store.create_session(record(f"s{number}", second=number))
        await store.append(f"s{number}", [entry(f"k{step}", b"x" * size) for step in range(entries)])


@contextmanager
def python(code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Another process that runs `code`; it says a line when it is ready and ends when its input closes."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line_of(process: subprocess.Popen[str]) -> str:
    """The next line that the process says."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


LOCK_HOLDER = """
    import sqlite3, sys
    connection = sqlite3.connect(sys.argv[1], isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    print("locked", flush=True)
    sys.stdin.readline()
    connection.execute("COMMIT")
    print("free", flush=True)
    sys.stdin.readline()
"""


def release(process: subprocess.Popen[str]) -> None:
    """Have a lock holder let go, and wait until it did."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert line_of(process) == "free"
