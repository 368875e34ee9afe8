"""The store: every state that it can be in, and that looking leaves no trace."""

import fcntl
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from acp_server.config.paths import short
from acp_server.doctor import store as checks
from acp_server.doctor.finding import Finding
from runtime.store.sqlite.schema import MIGRATIONS, SCHEMA_VERSION
from runtime.store.sqlite.store import SqliteStore
from runtime.values.stored import SessionRecord, StoredEntry
from tests.acp_server.doctor.rigs import Machine, database, only


def look(machine: Machine) -> Finding:
    """What is found of the store; nothing may have changed by looking."""
    before = machine.snapshot()
    found = only(checks.check_store(machine.read()), "store")
    assert machine.snapshot() == before
    return found


def told(finding: Finding) -> str:
    """Status and text."""
    return f"{finding.status}: {finding.text}"


async def make_store(machine: Machine) -> SqliteStore:
    """A store with one session, still open."""
    store = SqliteStore(machine.store, on_repair=lambda text: None)
    await store.create_session(SessionRecord("sess_1", "/w", "2026-01-01", "2026-01-01", "t", "{}"))
    return store


def test_no_file_yet(machine: Machine):
    assert told(look(machine)).startswith("ok: ")
    assert "will be made" in look(machine).text


async def test_a_sound_store(machine: Machine):
    await (await make_store(machine)).aclose()
    assert told(look(machine)) == f"ok: {short(str(machine.store))}: 1 session"


async def test_a_store_that_is_in_use(machine: Machine):
    store = await make_store(machine)
    assert told(only(checks.check_store(machine.read()), "store")).endswith(": 1 session")
    assert await store.session("sess_1") is not None
    await store.aclose()


def test_memory(machine: Machine):
    machine.env["WHOLETURN_STORE"] = "memory"
    assert told(look(machine)).startswith("note: Sessions are kept in memory")


def test_a_folder_that_cannot_be(machine: Machine):
    (machine.root / "file").touch()
    machine.env["WHOLETURN_STORE"] = str(machine.root / "file" / "sessions.db")
    assert told(look(machine)).startswith("bad: ")


@pytest.mark.parametrize("what", ["folder", "file"])
async def test_no_permission(machine: Machine, what: str):
    await (await make_store(machine)).aclose()
    barred = str(machine.store if what == "file" else machine.store.parent)

    def access(path: str, mode: int) -> bool:
        return path != barred and os.access(path, mode)

    found = only(checks.check_store(machine.read(), access), "store")
    assert found.status == "bad"
    assert "cannot be written" in found.text


async def test_a_newer_store(machine: Machine):
    await (await make_store(machine)).aclose()
    database(machine.store, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    assert told(look(machine)).startswith("bad: ")
    assert "newer version" in look(machine).text


def test_an_older_store(machine: Machine):
    connection = sqlite3.connect(machine.store)
    MIGRATIONS[0](connection)
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()
    assert told(look(machine)).startswith("ok: ")
    assert f"brought up to {SCHEMA_VERSION}" in look(machine).text


def test_a_database_of_another_program(machine: Machine):
    database(machine.store, "CREATE TABLE songs (title TEXT)")
    assert "another program" in look(machine).text


@pytest.mark.parametrize("content", [b"no database at all\0" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_database(machine: Machine, content: bytes):
    machine.store.write_bytes(content)
    found = look(machine)
    assert found.status == "bad"
    assert "damaged" in found.text


def test_a_text(machine: Machine):
    machine.store.write_text("notes\n")
    assert (look(machine).status, "is a text" in look(machine).text) == ("bad", True)


async def test_a_damaged_page(machine: Machine):
    await (await make_store(machine)).aclose()
    data = bytearray(machine.store.read_bytes())
    data[4096:8192] = b"\xa5" * 4096
    machine.store.write_bytes(data)
    assert "damaged" in look(machine).text


@pytest.mark.parametrize("column", ["session_id", "title", "cwd", "state", "updated_at"])
async def test_a_head_that_is_no_text(machine: Machine, column: str):
    await (await make_store(machine)).aclose()
    database(machine.store, f"UPDATE sessions SET {column} = CAST(x'61ff' AS TEXT)")
    found = look(machine)
    assert found.status == "bad"
    assert f"({column})" in found.text
    assert (("sess_1" in found.text), "1 session" in found.text) == (column != "session_id", False)


@pytest.mark.parametrize("column", ["turn_id", "key", "kind", "payload"])
async def test_a_step_that_is_no_text(machine: Machine, column: str):
    store = await make_store(machine)
    await store.append("sess_1", [StoredEntry("t", "turn:t:prompt", "prompt", b"{}")])
    await store.aclose()
    damaged = "'{}'" if column == "payload" else "CAST(x'61ff' AS TEXT)"
    database(machine.store, f"UPDATE entries SET {column} = {damaged}")
    assert f"({column})" in look(machine).text
    assert look(machine).status == "bad"


async def test_a_store_that_is_being_repaired(machine: Machine):
    await (await make_store(machine)).aclose()
    lock = os.open(f"{machine.store}.lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    assert told(look(machine)).startswith("note: ")
    os.close(lock)
    assert look(machine).status == "ok"


HOLDER = """
import sqlite3, sys
holder = sqlite3.connect(sys.argv[1], isolation_level=None)
holder.execute("PRAGMA locking_mode = EXCLUSIVE")
holder.execute("BEGIN IMMEDIATE")
holder.execute("UPDATE sessions SET title = 'x'")
holder.execute("COMMIT")
print("held", flush=True)
sys.stdin.read(1)
holder.close()
"""


def seen_while_held(machine: Machine) -> Finding:
    """What the check finds while another process holds the file for itself."""
    command = [sys.executable, "-c", HOLDER, str(machine.store)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        found = only(checks.check_store(machine.read()), "store")
        holder.communicate(b"\n", timeout=30)
    return found


async def test_a_store_that_another_program_has_locked(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    await (await make_store(machine)).aclose()
    monkeypatch.setattr(checks, "PATIENCE", 0.1)
    found = seen_while_held(machine)
    assert (found.status, "locked" in found.text) == ("bad", True)


@pytest.mark.parametrize(
    ("free", "status"), [(1 << 20, "bad"), (200 << 20, "note"), (900 << 20, "ok"), (1 << 40, "ok")]
)
def test_room_on_the_disk(machine: Machine, free: int, status: str, monkeypatch: pytest.MonkeyPatch):
    class Usage:
        def __init__(self, path: str | Path) -> None:
            self.free = free

    monkeypatch.setattr(shutil, "disk_usage", Usage)
    assert only(checks.check_store(machine.read()), "disk").status == status
