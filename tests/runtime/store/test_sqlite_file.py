"""The store's file: its mode bits, its schema, its locks, its speed by design."""

import os
import sqlite3
import stat
import tempfile
import threading
from pathlib import Path

import pytest
import trio

from runtime.store.common.faults import StoreTrouble, TroubleKind
from runtime.store.sqlite import schema
from runtime.store.sqlite.store import SqliteStore
from runtime.values.errors import StoreError
from tests.runtime.store.helpers import LOCK_HOLDER, entry, fill, keys, line_of, python, record, release


@pytest.fixture
def path(tmp_path):
    """Where the store will lie, in a folder that is not there yet."""
    return tmp_path / "data" / "s.db"


@pytest.fixture
async def store(path):
    """A store that hardly waits for locks."""
    made = SqliteStore(path, patience=0.2)
    yield made
    await made.aclose()


async def test_only_the_owner_can_read_it(store, path):
    old = os.umask(0)
    try:
        await store.create_session(record())
        await store.append("s1", [entry("k")])
        await store.session("s1")
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert {"s.db", "s.db-wal", "s.db-shm", "s.db.lock"} <= set(modes)
    assert set(modes.values()) == {0o600}


async def test_nothing_touches_the_disk_before_the_first_call(path):
    store = SqliteStore(path)
    assert not path.parent.exists()
    await store.aclose()
    assert not path.parent.exists()


async def test_an_eager_store_opens_its_file_in_the_background(path):
    store = SqliteStore(path, eager=True)
    with trio.fail_after(30):
        while not path.exists():
            await trio.lowlevel.checkpoint()
    assert await store.session("s1") is None
    await store.aclose()


async def test_a_commit_is_synced_to_the_disk(store):
    await store.create_session(record())
    modes: list[object] = []

    def look(connection: sqlite3.Connection) -> None:
        modes.append(connection.execute("PRAGMA synchronous").fetchone()[0])
        modes.append(connection.execute("PRAGMA journal_mode").fetchone()[0])

    await store._writer.run(look)
    assert modes == [2, "wal"]


async def test_a_new_file_has_the_current_version_and_our_mark(store, path):
    await store.create_session(record())
    await store.aclose()
    connection = sqlite3.connect(path)
    assert schema.read_version(connection) == schema.SCHEMA_VERSION
    assert connection.execute("PRAGMA application_id").fetchone()[0] == schema.APPLICATION_ID
    connection.close()


async def test_a_newer_file_is_named_and_left_alone(path):
    path.parent.mkdir()
    connection = sqlite3.connect(path, isolation_level=None)
    schema.migrate(connection)
    connection.execute(f"PRAGMA user_version = {schema.SCHEMA_VERSION + 1}")
    connection.close()
    before = path.read_bytes()
    store = SqliteStore(path)
    with pytest.raises(StoreTrouble, match="newer version") as caught:
        await store.create_session(record())
    assert caught.value.kind is TroubleKind.NEWER
    with pytest.raises(StoreTrouble, match="newer version"):
        await store.session("s1")
    await store.aclose()
    assert path.read_bytes() == before


async def test_another_programs_database_is_left_alone(path):
    path.parent.mkdir()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = path.read_bytes()
    store = SqliteStore(path)
    with pytest.raises(StoreTrouble, match="another program"):
        await store.create_session(record())
    await store.aclose()
    assert path.read_bytes() == before


def test_a_failing_migration_changes_nothing(monkeypatch):
    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE half (x)")
        raise sqlite3.OperationalError("no")

    connection = sqlite3.connect(":memory:", isolation_level=None)
    schema.migrate(connection)
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, fail))
    monkeypatch.setattr(schema, "SCHEMA_VERSION", len(schema.MIGRATIONS))
    with pytest.raises(sqlite3.OperationalError):
        schema.migrate(connection)
    assert schema.read_version(connection) == len(schema.MIGRATIONS) - 1
    assert connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'half'").fetchone() is None
    connection.close()


def test_an_older_file_takes_only_the_missing_steps(monkeypatch):
    connection = sqlite3.connect(":memory:", isolation_level=None)
    schema.migrate(connection)
    step = "ALTER TABLE sessions ADD COLUMN extra TEXT"
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, lambda target: target.execute(step)))
    monkeypatch.setattr(schema, "SCHEMA_VERSION", len(schema.MIGRATIONS))
    schema.migrate(connection)
    schema.migrate(connection)
    assert schema.read_version(connection) == len(schema.MIGRATIONS)
    connection.close()


async def test_waiting_appends_share_one_commit(store):
    await store.create_session(record())
    await store.append("s1", [entry("warm")])
    commits: list[str] = []
    gate = threading.Event()

    def block(connection: sqlite3.Connection) -> None:
        connection.set_trace_callback(commits.append)
        gate.wait(10)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(store._writer.run, block)
        await trio.testing.wait_all_tasks_blocked()
        for number in range(50):
            nursery.start_soon(store.append, "s1", [entry(f"k{number}")])
        await trio.testing.wait_all_tasks_blocked()
        gate.set()
    assert len(await keys(store)) == 51
    assert commits.count("COMMIT") <= 3


async def test_the_log_is_merged_while_nobody_waits(store):
    await store.create_session(record())
    merged = threading.Event()

    def watch(connection: sqlite3.Connection) -> None:
        connection.set_trace_callback(lambda sql: merged.set() if "wal_checkpoint" in sql else None)

    await store._writer.run(watch)
    for number in range(70):
        await store.append("s1", [entry(f"k{number}")])
    assert await trio.to_thread.run_sync(merged.wait, 10)
    assert len(await keys(store)) == 70


async def test_a_bug_while_opening_reaches_the_caller_and_not_the_next_one(store, monkeypatch):
    def break_down() -> sqlite3.Connection:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(store._writer, "_open_file", break_down)
        with trio.fail_after(10), pytest.raises(RuntimeError, match="a bug"):
            await store.create_session(record())
    await store.create_session(record())
    assert await keys(store) == []


async def test_a_full_disk_fails_the_big_append_and_not_its_neighbours(store):
    await fill(store, sessions=2, entries=10)
    pages: list[int] = []

    def limit(connection: sqlite3.Connection) -> None:
        used = connection.execute("PRAGMA page_count").fetchone()[0]
        pages.append(connection.execute(f"PRAGMA max_page_count = {used + 20}").fetchone()[0])

    await store._writer.run(limit)
    troubles: list[StoreTrouble] = []

    async def big() -> None:
        try:
            await store.append("s0", [entry("big", b"x" * 1_000_000)])
        except StoreTrouble as trouble:
            troubles.append(trouble)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(big)
        for number in range(5):
            nursery.start_soon(store.append, "s1", [entry(f"small{number}")])
    assert [trouble.kind for trouble in troubles] == [TroubleKind.FULL]
    assert "disk is full" in str(troubles[0])
    assert await store.position("s0", "big") is None
    assert len(await keys(store)) == 15


async def test_a_lock_of_another_process_is_waited_for_then_named(store, path):
    await store.create_session(record())
    with python(LOCK_HOLDER, path) as other:
        assert line_of(other) == "locked"
        with pytest.raises(StoreTrouble, match="locked by another program"):
            await store.append("s1", [entry("refused")])
        assert await keys(store) == [], "reading needs no lock"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.append, "s1", [entry("patient")])
            release(other)
    assert await keys(store) == ["patient"]


async def test_a_call_that_waits_for_a_lock_can_be_cancelled_at_once(path):
    store = SqliteStore(path, patience=60)
    await store.create_session(record())
    with python(LOCK_HOLDER, path) as other:
        assert line_of(other) == "locked"
        with trio.move_on_after(0.05) as scope:
            await store.append("s1", [entry("withdrawn")])
        assert scope.cancelled_caught
        release(other)
        await store.append("s1", [entry("kept")])
    assert await keys(store) == ["kept"]
    await store.aclose()


async def test_a_cancellation_in_mid_commit_is_honoured_after_it(store):
    await store.create_session(record())
    begun, gate = threading.Event(), threading.Event()
    ended: list[str] = []

    def slow(connection: sqlite3.Connection) -> None:
        begun.set()
        gate.wait(10)
        connection.execute("UPDATE sessions SET title = 'done'")

    async def caller() -> None:
        try:
            await store._writer.run(slow)
            ended.append("returned")
        except trio.Cancelled:
            ended.append("cancelled")
            raise

    async with trio.open_nursery() as nursery:
        nursery.start_soon(caller)
        await trio.to_thread.run_sync(begun.wait, 10)
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await trio.testing.wait_all_tasks_blocked()
            assert ended == []
            gate.set()
    assert ended == ["cancelled"]
    assert (await store.session("s1")).title == "done"


OTHER_WRITER = """
    import sys, trio
    from pathlib import Path
    from runtime.store.sqlite.store import SqliteStore
    from tests.runtime.store.helpers import entry, record

    async def main():
        store = SqliteStore(Path(sys.argv[1]))
        await store.create_session(record(sys.argv[2]))
        for number in range(100):
            await store.append(sys.argv[2], [entry(f"k{number}")])
        await store.aclose()

    trio.run(main)
"""


async def test_two_processes_write_one_file_at_once(store, path):
    with python(OTHER_WRITER, path, "a") as first, python(OTHER_WRITER, path, "b") as second:
        assert [first.wait(60), second.wait(60)] == [0, 0]
    for session_id in ("a", "b"):
        assert await keys(store, session_id) == [f"k{number}" for number in range(100)]


async def test_text_that_is_not_unicode_is_refused(store):
    await store.create_session(record())
    with pytest.raises(StoreError, match="surrogates"):
        await store.append("s1", [entry("\ud800")])
    with pytest.raises(StoreError, match="surrogates"):
        await store.session("\ud800")
    await store.append("s1", [entry("fine")])
    assert await keys(store) == ["fine"]


async def test_a_folder_in_the_file_s_place_is_named(tmp_path):
    (tmp_path / "s.db").mkdir()
    store = SqliteStore(tmp_path / "s.db")
    with pytest.raises(StoreTrouble, match="cannot be opened"):
        await store.create_session(record())
    await store.aclose()


async def test_a_file_in_the_folder_s_place_is_named(tmp_path):
    (tmp_path / "data").write_text("in the way")
    store = SqliteStore(tmp_path / "data" / "s.db")
    with pytest.raises(StoreTrouble, match="cannot be opened"):
        await store.create_session(record())
    await store.aclose()


READ_ONLY_USER = """
    import os, sys, trio
    from pathlib import Path
    from runtime.values.errors import StoreError
    from runtime.store.resilient.store import ResilientStore
    from runtime.store.sqlite.store import SqliteStore
    from tests.runtime.store.helpers import entry, keys, record

    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)

    async def main():
        told = []
        store = ResilientStore(SqliteStore(Path(sys.argv[1])), on_trouble=told.append)
        print(len(await keys(store)), flush=True)
        await store.create_session(record("new"))
        await store.append("new", [entry("k")])
        await store.append("s1", [entry("mine")])
        print(await keys(store, "new"), (await keys(store))[-1], flush=True)
        print(len(told), "cannot be written" in told[0], flush=True)
        await store.aclose()
        print(told[-1], flush=True)

    trio.run(main)
"""


@pytest.fixture
def open_folder():
    """A folder that every user may enter."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        (folder / "data").chmod(0o700)


@pytest.mark.parametrize("folder_mode", [0o555, 0o777])
async def test_a_read_only_file_is_read_and_work_goes_on_in_memory(open_folder, folder_mode):
    path = open_folder / "data" / "s.db"
    store = SqliteStore(path)
    await fill(store)
    await store.aclose()
    path.chmod(0o444)
    path.parent.chmod(folder_mode)
    before = path.read_bytes()
    with python(READ_ONLY_USER, path) as other:
        lines = [line_of(other) for _ in range(4)]
        assert other.wait(30) == 0
    assert lines[:3] == ["200", "['k'] mine", "1 True"]
    assert "lost are changes of: new, s1" in lines[3]
    assert path.read_bytes() == before
