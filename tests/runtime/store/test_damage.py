"""Damaged files: what is readable is kept, the damaged file stays aside, the person is told."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from runtime.store.common.faults import StoreTrouble, TroubleKind
from runtime.store.opening import open_store
from runtime.store.sqlite import repair
from runtime.store.sqlite.store import SqliteStore
from runtime.values.stored import SessionRecord
from tests.runtime.store.helpers import entry, fill, keys, line_of, python, record

PAGE = 4096


@pytest.fixture
async def path(tmp_path):
    """A store of three sessions, 200 entries each, closed in order."""
    path = tmp_path / "s.db"
    store = SqliteStore(path)
    await fill(store)
    await store.aclose()
    return path


def pages_of(path: Path, table: str) -> list[int]:
    """Numbers of the leaf pages of a table, 1-based."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf'", (table,))
        return [row[0] for row in rows]


def overwrite(path: Path, page: int, content: bytes = b"\0" * PAGE) -> None:
    """Put other bytes in a page's place."""
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(content)


def tear(path: Path) -> None:
    """Cut the end off, as a crash in mid-write does."""
    path.write_bytes(path.read_bytes()[:-3000])


def integrity(path: Path) -> str:
    """What SQLite itself thinks of the file."""
    with closing(sqlite3.connect(path)) as connection:
        return str(connection.execute("PRAGMA integrity_check").fetchone()[0])


async def test_a_hole_in_the_middle_costs_only_the_rows_in_it(path):
    leaves = pages_of(path, "entries")
    overwrite(path, leaves[len(leaves) // 2])
    damaged = path.read_bytes()
    told: list[str] = []
    store = SqliteStore(path, on_repair=told.append)
    found = {number: await keys(store, f"s{number}") for number in range(3)}
    lost = 600 - sum(map(len, found.values()))
    assert 1 <= lost <= 15
    assert found[0] == found[2] == [f"k{step}" for step in range(200)]
    aside = path.with_name("s.db.corrupt-1")
    assert len(told) == 1
    assert f"3 sessions and {600 - lost} entries" in told[0]
    assert str(aside) in told[0]
    assert aside.read_bytes() == damaged
    await store.append("s1", [entry("after")])
    assert (await keys(store, "s1"))[-1] == "after"
    await store.aclose()
    assert integrity(path) == "ok"


async def test_damage_that_a_write_meets_is_repaired_and_the_write_is_done(path):
    overwrite(path, pages_of(path, "entries")[-1])
    told: list[str] = []
    store = SqliteStore(path, on_repair=told.append)
    await store.append("s2", [entry("after", b"x" * 3000)])
    assert (await keys(store, "s2"))[-1] == "after"
    await store.aclose()
    assert len(told) == 1
    assert integrity(path) == "ok"


async def test_several_holes_and_a_broken_index_leave_the_rest(path):
    leaves = pages_of(path, "entries")
    for place in (3, 9, 20, len(leaves) - 1):
        overwrite(path, leaves[place], b"\xff" * PAGE)
    overwrite(path, pages_of(path, "entries_by_key")[0])
    store = SqliteStore(path)
    total = sum([len(await keys(store, f"s{number}")) for number in range(3)])
    assert 540 <= total < 600
    await store.aclose()
    assert integrity(path) == "ok"


async def test_entries_whose_session_was_lost_stay_reachable(path):
    overwrite(path, pages_of(path, "sessions")[0])
    store = SqliteStore(path)
    head = await store.session("s1")
    changed = "2026-01-01T00:00:01Z"
    assert head == SessionRecord("s1", "/w", changed, changed, title="Recovered session")
    assert len(await keys(store, "s1")) == 200
    listed = await store.list_sessions(cwd=None, cursor=None, limit=10)
    assert len(listed.sessions) == 3
    await store.aclose()


async def test_entries_of_which_not_even_the_session_s_id_is_left_stay_reachable(path):
    for table in ("sessions", "sqlite_autoindex_sessions_1", "sessions_by_change", "sessions_by_cwd"):
        overwrite(path, pages_of(path, table)[0])
    store = SqliteStore(path)
    listed = await store.list_sessions(cwd=None, cursor=None, limit=10)
    assert {head.session_id for head in listed.sessions} == {f"recovered-{n}" for n in (1, 2, 3)}
    assert len(await keys(store, "recovered-2")) == 200
    await store.aclose()
    assert integrity(path) == "ok"


@pytest.mark.parametrize(("share", "least"), [(0.9, 500), (0.5, 240), (0.05, 0)])
async def test_a_truncated_file_gives_what_is_left(path, share, least):
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    told: list[str] = []
    store = SqliteStore(path, on_repair=told.append)
    await store.create_session(record("new"))
    assert await keys(store, "new") == []
    assert len(told) == 1
    assert sum([len(await keys(store, f"s{number}")) for number in range(3)]) >= least
    await store.aclose()
    assert integrity(path) == "ok"
    assert path.with_name("s.db.corrupt-1").stat().st_size == int(len(content) * share)


@pytest.mark.parametrize(
    "garbage",
    [
        b"no database at all\0",
        "grün".encode("latin-1"),
        b"\0" * 20_000,
        b"SQLite format 3\0" + b"\xff" * 9_000,
    ],
)
async def test_garbage_is_put_aside_and_a_new_file_begun(path, garbage):
    path.write_bytes(garbage)
    told: list[str] = []
    store = SqliteStore(path, on_repair=told.append)
    assert await store.session("s1") is None
    await store.create_session(record())
    await store.append("s1", [entry("k")])
    await store.aclose()
    assert len(told) == 1
    assert path.with_name("s.db.corrupt-1").read_bytes() == garbage
    assert integrity(path) == "ok"


@pytest.mark.parametrize(
    "text", [b"root:x:0:0\n", "Notizen: Stra\u00dfe\n".encode() * 900, b"\x1b[1mlog\x1b[0m\r\n"]
)
async def test_a_text_is_no_damaged_store(path, text):
    path.write_bytes(text)
    told: list[str] = []
    store = SqliteStore(path, on_repair=told.append)
    for try_it in (store.create_session(record()), store.session("s1")):
        with pytest.raises(StoreTrouble) as caught:
            await try_it
        assert caught.value.kind is TroubleKind.FOREIGN
    await store.aclose()
    assert told == []
    assert path.read_bytes() == text
    assert [file.name for file in path.parent.iterdir() if "corrupt" in file.name] == []


async def test_a_second_damage_gets_a_name_of_its_own(path):
    for number in (1, 2):
        path.write_bytes(b"garbage\0%d" % number)
        store = SqliteStore(path)
        await store.create_session(record())
        await store.aclose()
    names = {file.name: file.read_bytes() for file in path.parent.glob("*corrupt*")}
    assert names == {"s.db.corrupt-1": b"garbage\x001", "s.db.corrupt-2": b"garbage\x002"}


async def test_an_empty_file_is_a_new_one(tmp_path):
    path = tmp_path / "s.db"
    path.touch()
    told: list[str] = []
    store = SqliteStore(path, on_repair=told.append)
    await store.create_session(record())
    await store.aclose()
    assert told == []
    assert [file.name for file in tmp_path.iterdir() if "corrupt" in file.name] == []


KILLED_WRITER = """
    import os, sys, trio
    from pathlib import Path
    from runtime.store.sqlite.store import SqliteStore
    from tests.runtime.store.helpers import entry

    async def main():
        store = SqliteStore(Path(sys.argv[1]))
        for number in range(40):
            await store.append("s1", [entry(f"late{number}", b"y" * 500)])
        print("written", flush=True)
        sys.stdin.readline()

    trio.run(main)
"""


async def test_a_torn_log_after_a_kill_loses_nothing_before_the_tear(path):
    with python(KILLED_WRITER, path) as other:
        assert line_of(other) == "written"
    tear(Path(f"{path}-wal"))
    store = SqliteStore(path)
    found = await keys(store, "s1")
    assert found[:200] == [f"k{step}" for step in range(200)]
    assert found[200:] == [f"late{number}" for number in range(len(found) - 200)]
    assert len(found) >= 238
    await store.aclose()
    assert integrity(path) == "ok"


async def test_rows_in_the_log_survive_damage_of_the_file(path):
    with python(KILLED_WRITER, path) as other:
        assert line_of(other) == "written"
    leaves = pages_of_copy(path)
    overwrite(path, leaves[len(leaves) // 3])
    told: list[str] = []
    store = SqliteStore(path, on_repair=told.append)
    await store.create_session(record("new"))
    assert len(told) == 1, "an unclean end makes the next start check the file"
    assert (await keys(store, "s1"))[-40:] == [f"late{number}" for number in range(40)]
    await store.aclose()


def pages_of_copy(path: Path) -> list[int]:
    """Leaf pages of the entries, read without touching the file or its log."""
    copy = path.with_name("copy.db")
    copy.write_bytes(path.read_bytes())
    found = pages_of(copy, "entries")
    copy.unlink()
    return found


IDLE_HOLDER = """
    import sys, trio
    from pathlib import Path
    from runtime.values.stored import HeadChange
    from runtime.store.sqlite.store import SqliteStore

    async def main():
        store = SqliteStore(Path(sys.argv[1]))
        await store.append("s0", [], head=HeadChange(updated_at="2027"))
        print("open", flush=True)
        await trio.to_thread.run_sync(sys.stdin.readline)
        await store.aclose()

    trio.run(main)
"""


async def test_a_file_that_another_process_uses_is_not_replaced_under_it(path):
    leaves = pages_of(path, "entries")
    with python(IDLE_HOLDER, path) as other:
        assert line_of(other) == "open"
        overwrite(path, leaves[len(leaves) // 2])
        store = SqliteStore(path)
        with pytest.raises(StoreTrouble, match="another process has it open") as caught:
            await keys(store, "s1")
        assert caught.value.kind is TroubleKind.CORRUPT
        assert len(await keys(store, "s0")) == 200, "what is sound stays readable"
        other.communicate("\n")
    assert 180 <= len(await keys(store, "s1")) < 200
    await store.aclose()
    assert integrity(path) == "ok"


async def test_a_repair_that_fails_leaves_everything_as_it_was(path, monkeypatch):
    leaves = pages_of(path, "entries")
    overwrite(path, leaves[len(leaves) // 2])
    damaged = path.read_bytes()

    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(repair, "_replace", full)
        store = SqliteStore(path)
        with pytest.raises(StoreTrouble, match="disk is full"):
            await keys(store, "s1")
    assert path.read_bytes() == damaged
    assert sorted(file.name for file in path.parent.iterdir() if "-" not in file.name) == [
        "s.db",
        "s.db.lock",
    ]
    assert len(await keys(store, "s1")) > 180, "the next call tries again"
    await store.aclose()


async def test_a_file_that_is_removed_while_in_use_is_missed_at_once(tmp_path):
    told: list[str] = []
    path = tmp_path / "data" / "s.db"
    store = open_store(path, on_trouble=told.append)
    await store.create_session(record("s1"))
    await store.append("s1", [entry("before")])
    shutil.rmtree(path.parent)
    await store.append("s1", [entry("after")])
    await store.append("s1", [entry("later")])
    assert len(told) == 1
    assert "removed or replaced" in told[0]
    with pytest.raises(StoreTrouble, match="no such file"):
        await store.entries("s1")
    assert not path.exists(), "a new file would know none of the sessions"
    await store.aclose()
    assert "lost are changes of: s1" in told[-1]
