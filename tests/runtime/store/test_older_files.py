"""A file of an older version becomes a current one at its first use: whole, or not at all."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import trio

from runtime.store.common.faults import StoreTrouble, TroubleKind
from runtime.store.opening import open_store
from runtime.store.sqlite import schema
from runtime.store.sqlite.connection import open_for_reading
from runtime.store.sqlite.file import LockFile
from runtime.store.sqlite.store import SqliteStore
from runtime.values.stored import Holder, SessionRecord, Store
from tests.runtime.store.helpers import entry, keys, line_of, python, record
from tests.runtime.store.older import make_version_1, make_version_2, version_of
from tests.runtime.store.test_damage import integrity, overwrite, pages_of, tear


@pytest.fixture
def path(tmp_path):
    """A file as version 1 left it: three sessions of 200 entries."""
    path = tmp_path / "s.db"
    make_version_1(path)
    return path


async def check_content(store: Store, entries: int = 200) -> None:
    """Everything that was in the older file, and nothing else."""
    for number in range(3):
        changed = f"2026-01-01T00:00:{number:02}Z"
        head = SessionRecord(f"s{number}", "/w", "2026-01-01T00:00:00Z", changed, "T ✓", "{}")
        assert await store.session(f"s{number}") == head
        found = await store.entries(f"s{number}")
        assert [(line.seq, line.key) for line in found] == [(n + 1, f"k{n}") for n in range(entries)]
        assert [line.payload for line in found] == [f"{number}:{n}".encode() * 40 for n in range(entries)]
        assert await store.position(f"s{number}", "k7") == 8
    page = await store.list_sessions(cwd="/w", cursor=None, limit=2)
    assert [head.session_id for head in page.sessions] == ["s2", "s1"]


async def test_an_older_file_is_brought_up_to_date_with_all_that_is_in_it(path):
    told: list[str] = []
    store = open_store(path, on_trouble=told.append)
    await check_content(store)
    await store.append("s1", [entry("k199"), entry("after")])
    assert (await keys(store, "s1"))[-2:] == ["k199", "after"]
    assert await store.position("s1", "after") == 201
    await store.aclose()
    assert (version_of(path), integrity(path), told) == (schema.SCHEMA_VERSION, "ok", [])


async def test_a_file_of_version_2_is_brought_up_to_date_with_all_that_is_in_it(tmp_path):
    path = tmp_path / "s.db"
    make_version_2(path)
    store = open_store(path, on_trouble=lambda told: pytest.fail(told))
    await check_content(store)
    assert (await store.leases.take("s0", Holder("me"))).fence == 8
    await store.fork_session(record("copy"), "s1", up_to=150)
    await store.append("copy", [entry("after")])
    assert await keys(store, "copy") == [*(f"k{number}" for number in range(150)), "after"]
    await store.aclose()
    assert (version_of(path), integrity(path)) == (schema.SCHEMA_VERSION, "ok")


def size_of_log(path: Path) -> int:
    """Bytes of the write-ahead log."""
    return Path(f"{path}-wal").stat().st_size


def put_back(path: Path, content: bytes) -> None:
    """Make the file what it was, with no log beside it."""
    Path(f"{path}-wal").unlink(missing_ok=True)
    path.write_bytes(content)


async def test_an_older_file_leaves_no_copy_of_itself_in_the_log(path):
    store = SqliteStore(path)
    await store.session("s1")
    assert size_of_log(path) < 100_000 < path.stat().st_size
    await store.aclose()


KILLED_MIGRATION = """
    import os, signal, sqlite3, sys
    from runtime.store.sqlite import schema

    connection = sqlite3.connect(sys.argv[1], isolation_level=None)
    steps = 0

    def count():
        global steps
        steps += 1
        if steps == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)

    connection.set_progress_handler(count, 100)
    schema.migrate(connection)
    print(steps, flush=True)
"""


async def test_a_kill_at_any_moment_of_the_change_leaves_one_or_the_other(path):
    original = path.read_bytes()
    with python(KILLED_MIGRATION, path, 0) as whole:
        steps = int(line_of(whole))
    assert steps > 100
    rounds = int(os.environ.get("KILL_ROUNDS", "10"))
    for number in range(rounds):
        put_back(path, original)
        with python(KILLED_MIGRATION, path, 1 + number * (steps - 1) // max(rounds - 1, 1)) as killed:
            assert killed.wait(60) == -9
        assert version_of(path) in (1, schema.SCHEMA_VERSION)
        store = SqliteStore(path)
        await check_content(store)
        await store.aclose()
        assert integrity(path) == "ok"


async def test_a_full_disk_leaves_the_older_file_as_it_was(path, monkeypatch):
    to_version_1, to_version_2, *later = schema.MIGRATIONS

    def no_room(connection: sqlite3.Connection) -> None:
        used = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {used + 3}")
        to_version_2(connection)

    store = SqliteStore(path)
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", (to_version_1, no_room, *later))
        with pytest.raises(StoreTrouble, match="disk is full"):
            await store.append("s1", [entry("refused")])
        assert version_of(path) == 1
    await check_content(store)
    await store.aclose()


USER = """
    import sys, trio
    from pathlib import Path
    from runtime.store.sqlite.store import SqliteStore

    async def main():
        store = SqliteStore(Path(sys.argv[1]), patience=60)
        print(len(await store.entries("s1")), flush=True)
        await trio.to_thread.run_sync(sys.stdin.readline)
        await store.aclose()

    trio.run(main)
"""


async def test_many_processes_that_meet_an_older_file_change_it_once(path):
    with python(USER, path) as first, python(USER, path) as second, python(USER, path) as third:
        assert [line_of(process) for process in (first, second, third)] == ["200"] * 3
    assert integrity(path) == "ok"


async def test_a_file_that_an_older_version_has_open_is_not_changed_under_it(path):
    older = LockFile(path)
    assert older.try_share()
    store = SqliteStore(path, patience=0.1)
    with pytest.raises(StoreTrouble, match="older version that is running") as caught:
        await store.append("s1", [entry("refused")])
    assert caught.value.kind is TroubleKind.LOCKED
    assert version_of(path) == 1
    older.close()
    await check_content(store)
    await store.aclose()


async def test_a_reader_of_an_older_file_is_told_so(path):
    with pytest.raises(StoreTrouble, match="could not be brought up to date"):
        open_for_reading(path, timeout=1)


async def test_a_damaged_older_file_gives_what_can_be_read(path):
    leaves = pages_of(path, "entries")
    overwrite(path, leaves[len(leaves) // 2])
    told: list[str] = []
    store = SqliteStore(path, on_repair=told.append)
    kept = [len(await keys(store, f"s{number}")) for number in range(3)]
    assert 570 <= sum(kept) < 600
    await store.aclose()
    assert len(told) == 1
    assert (version_of(path), integrity(path)) == (schema.SCHEMA_VERSION, "ok")


async def test_a_torn_older_file_gives_what_can_be_read(path):
    tear(path)
    store = SqliteStore(path)
    with trio.fail_after(60):
        assert await store.session("s1") is not None
        assert sum([len(await keys(store, f"s{number}")) for number in range(3)]) > 500
    await store.aclose()
    assert integrity(path) == "ok"


def test_the_sample_is_what_version_1_made(path):
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        schema.MIGRATIONS[0](made)
        tables = "SELECT name, replace(sql, ' ', '') FROM sqlite_master ORDER BY name"
        expected = made.execute(tables).fetchall()
        mark = made.execute("PRAGMA application_id").fetchone()
    with closing(sqlite3.connect(path)) as sample:
        assert sample.execute(tables).fetchall() == expected
        assert sample.execute("PRAGMA application_id").fetchone() == mark
