"""Damage where copies share entries: what is there stays reachable, and nothing turns up twice."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import trio

from runtime.store.sqlite.repair import rebuild
from runtime.store.sqlite.store import SqliteStore
from runtime.values.stored import Checkpoint
from tests.runtime.store.helpers import entry, keys, record
from tests.runtime.store.test_damage import integrity, overwrite, pages_of

SHARED = [f"k{number}" for number in range(200)]


@pytest.fixture
async def path(tmp_path):
    """s0 has 300 entries; s1 shares 200 of them, s2 those of s1; each has one of its own."""
    path = tmp_path / "s.db"
    store = SqliteStore(path)
    await store.create_session(record("s0"))
    await store.append("s0", [entry(f"k{number}", b"x" * 300) for number in range(300)])
    await store.checkpoints.keep("s0", [Checkpoint(100, 0, "k99", b"v")])
    await store.fork_session(record("s1"), "s0", up_to=200)
    await store.append("s1", [entry("mine-1")])
    await store.fork_session(record("s2"), "s1", up_to=2**32 - 1)
    await store.append("s2", [entry("mine-2")])
    await store.aclose()
    return path


def change(path: Path, statement: str) -> None:
    """Change the file behind the store's back."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


async def listed(store: SqliteStore) -> set[str]:
    """All ids."""
    page = await store.list_sessions(cwd=None, cursor=None, limit=50)
    return {head.session_id for head in page.sessions}


async def test_a_repair_keeps_what_is_shared(path):
    rebuild(path, timeout=1.0)
    store = SqliteStore(path)
    assert await listed(store) == {"s0", "s1", "s2"}
    assert len(await keys(store, "s0")) == 300
    assert await keys(store, "s1") == [*SHARED, "mine-1"]
    assert await keys(store, "s2") == [*SHARED, "mine-1", "mine-2"]
    await store.aclose()
    assert integrity(path) == "ok"


async def test_a_repair_makes_no_session_of_what_only_copies_have(path):
    store = SqliteStore(path)
    await store.delete_session("s0")
    await store.delete_session("s1")
    await store.aclose()
    rebuild(path, timeout=1.0)
    store = SqliteStore(path)
    assert await listed(store) == {"s2"}
    assert await keys(store, "s2") == [*SHARED, "mine-1", "mine-2"]
    assert await store.delete_session("s2")
    await store.aclose()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM entries").fetchone() == (0,)


async def test_a_repair_drops_checkpoints_for_they_may_know_of_what_is_lost(path):
    store = SqliteStore(path)
    assert len(await store.checkpoints.latest("s2")) == 1
    await store.aclose()
    rebuild(path, timeout=1.0)
    store = SqliteStore(path)
    assert await store.checkpoints.latest("s2") == []
    await store.aclose()


@pytest.mark.parametrize(
    ("lost", "left"),
    [
        ("s0", {"recovered-1": 300, "s1": 201, "s2": 202}),
        ("s1", {"s0": 300, "s2": 202}),
        ("s2", {"s0": 300, "s1": 201, "recovered-3": 202}),
    ],
)
async def test_a_lost_head_leaves_no_entry_out_of_reach(path, lost, left):
    change(path, f"DELETE FROM sessions WHERE session_id = '{lost}'")
    rebuild(path, timeout=1.0)
    store = SqliteStore(path)
    assert {name: len(await keys(store, name)) for name in await listed(store)} == left
    await store.aclose()


async def test_lost_rows_of_who_shares_leave_the_entries_with_their_source(path):
    overwrite(path, pages_of(path, "shared")[0])
    store = SqliteStore(path)
    with trio.fail_after(30):
        assert len(await keys(store, "s0")) == 300
        assert await keys(store, "s1") == ["mine-1"]
        assert await keys(store, "s2") == ["mine-2"]
    await store.aclose()


@pytest.mark.parametrize("source", ["3", "99", "-1", "0", "'x'", "9223372036854775807", "x'00'"])
@pytest.mark.parametrize("up_to", ["-5", "9223372036854775807", "'x'", "200"])
async def test_a_row_that_says_what_cannot_be_hides_nothing_else(path, source, up_to):
    change(path, f"UPDATE shared SET source = {source}, up_to = {up_to} WHERE session = 3")
    store = SqliteStore(path)
    with trio.fail_after(30):
        assert (await keys(store, "s2"))[-1] == "mine-2"
        await store.append("s2", [entry("more")])
        assert (await keys(store, "s2"))[-1] == "more"
        assert await keys(store, "s1") == [*SHARED, "mine-1"]
        assert await store.delete_session("s2")
        assert await store.delete_session("s0")
        assert await keys(store, "s1") == [*SHARED, "mine-1"]
    await store.aclose()


async def test_a_damaged_shared_step_is_mended_for_all(path):
    change(path, "UPDATE entries SET kind = CAST(x'ff' AS TEXT) WHERE key = 'k7'")
    told: list[str] = []
    store = SqliteStore(path, on_repair=told.append)
    assert await keys(store, "s2") == [*SHARED, "mine-1", "mine-2"]
    assert await keys(store, "s0") == [f"k{number}" for number in range(300)]
    await store.aclose()
    assert len(told) == 1
