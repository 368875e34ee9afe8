"""Damaged cells: one row never hides the others; what can be read of it is kept, and it is told."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import trio

from runtime.store.sqlite import mend_cells
from runtime.store.sqlite.connection import connect
from runtime.store.sqlite.repair import rebuild
from runtime.store.sqlite.search_index import search as _search  # noqa: F401 - the index must be there
from runtime.store.sqlite.store import SqliteStore
from runtime.values.errors import StoreError
from runtime.values.stored import Holder, SessionRecord, StoredEntry
from tests.runtime.store.helpers import keys, record

VALUES = {
    "no utf-8": "CAST(x'61ff62' AS TEXT)",
    "half a character": "CAST(x'61e282' AS TEXT)",
    "a blob": "x'6162'",
    "a wild blob": "x'00ff80'",
    "a number": "5",
    "a large number": "9223372036854775807",
    "a fraction": "-1e308",
    "infinite": "9e999",
    "nul": "CAST(x'610062' AS TEXT)",
    "empty": "''",
}
HEAD = ("session_id", "cwd", "created_at", "updated_at", "title", "state")
ENTRY = ("turn_id", "key", "kind", "payload")


@pytest.fixture
async def path(tmp_path):
    """Three sessions s0, s1, s2 in /w, a turn of two steps each."""
    path = tmp_path / "s.db"
    store = SqliteStore(path)
    for number in range(3):
        await store.create_session(record(f"s{number}", second=number)._replace(title=f"T{number}"))
        await store.append(f"s{number}", steps(number))
    await store.aclose()
    return path


def steps(number: int) -> list[StoredEntry]:
    """A prompt and a reply."""
    turn = f"t{number}"
    return [
        StoredEntry(turn, f"turn:{turn}:prompt", "prompt", b'{"kind":"prompt","text":"word"}'),
        StoredEntry(turn, f"turn:{turn}:iter:0", "reply", b'{"kind":"reply","text":"answer"}'),
    ]


def damage(path: Path, statement: str) -> None:
    """Change the file behind the store's back."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(statement).rowcount == 1
        connection.commit()


async def listed(store: SqliteStore, limit: int = 2) -> dict[str, SessionRecord]:
    """All heads by their ids, page by page."""
    found: list[SessionRecord] = []
    cursor = None
    with trio.fail_after(10):
        while True:
            page = await store.list_sessions(cwd=None, cursor=cursor, limit=limit)
            found += page.sessions
            cursor = page.next_cursor
            if cursor is None:
                assert len({head.session_id for head in found}) == len(found)
                return {head.session_id: head for head in found}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("column", HEAD)
async def test_a_damaged_head_hides_no_session(path, column, value):
    damage(path, f"UPDATE sessions SET {column} = {value} WHERE session_id = 's1'")
    store = SqliteStore(path)
    found = await listed(store)
    assert len(found) == 3
    assert {"s0", "s2"} < set(found)
    (name,) = set(found) - {"s0", "s2"}
    assert all(isinstance(cell, str) for cell in found[name])
    assert await store.session(name) == found[name]
    assert await keys(store, name) == ["turn:t1:prompt", "turn:t1:iter:0"]
    await store.append(name, [StoredEntry("t9", "turn:t9:prompt", "prompt", b"{}")])
    assert len(await keys(store, name)) == 3
    await store.aclose()


@pytest.mark.parametrize("column", HEAD)
async def test_a_mended_head_is_told_once_and_stays_mended(path, column):
    damage(path, f"UPDATE sessions SET {column} = CAST(x'61ff62' AS TEXT) WHERE session_id = 's1'")
    told: list[str] = []
    store = SqliteStore(path, on_repair=told.append)
    first = await listed(store)
    assert await listed(store) == first
    await store.aclose()
    assert len(told) == 1
    assert f"({column})" in told[0]
    assert str(path) in told[0]
    with closing(connect(path, 1.0)) as connection:
        assert list(mend_cells.damaged_heads(connection)) == []


async def test_what_a_mended_head_says(path):
    for column in ("cwd", "title", "created_at", "updated_at"):
        damage(path, f"UPDATE sessions SET {column} = CAST(x'2f61ff62' AS TEXT) WHERE session_id = 's1'")
    store = SqliteStore(path)
    head = (await listed(store))["s1"]
    assert (head.cwd, head.title) == ("/a\ufffdb", "/a\ufffdb")
    assert head.created_at == head.updated_at == "1970-01-01T00:00:00Z"
    await store.aclose()


async def test_a_damaged_time_is_the_other_one(path):
    damage(path, "UPDATE sessions SET updated_at = x'80' WHERE session_id = 's1'")
    store = SqliteStore(path)
    assert (await listed(store))["s1"].updated_at == "2026-01-01T00:00:00Z"
    await store.aclose()


async def test_two_ids_that_read_the_same_stay_two_sessions(path):
    for number, byte in ((1, "fe"), (2, "ff")):
        damage(
            path, f"UPDATE sessions SET session_id = CAST(x'{byte}' AS TEXT) WHERE session_id = 's{number}'"
        )
    store = SqliteStore(path)
    found = await listed(store)
    assert set(found) == {"s0", "\ufffd", "\ufffd~3"}
    assert (await keys(store, "\ufffd"))[0] == "turn:t1:prompt"
    assert (await keys(store, "\ufffd~3"))[0] == "turn:t2:prompt"
    await store.aclose()


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("column", ENTRY)
async def test_a_damaged_step_hides_no_other(path, column, value):
    damage(path, f"UPDATE entries SET {column} = {value} WHERE key = 'turn:t1:prompt'")
    store = SqliteStore(path)
    found = await store.entries("s1")
    assert [entry.seq for entry in found] == [1, 2]
    assert found[1] == steps(1)[1]._replace(seq=2)
    assert all(isinstance(cell, str) for cell in found[0][:3])
    assert isinstance(found[0].payload, bytes)
    assert await store.entries("s1") == found
    assert await store.entries("s1", after=1, limit=1) == found[1:]
    assert [hit.key for hit in await store.search("s1", "answer", limit=5)] == ["turn:t1:iter:0"]
    await store.aclose()


@pytest.mark.parametrize("column", ["turn_id", "key", "kind"])
async def test_what_other_cells_know_of_a_damaged_one_is_taken_from_them(path, column):
    raw = {"turn_id": b"t\xff", "key": b"turn:\xff1:prompt", "kind": b"pro\xfft"}[column]
    damage(path, f"UPDATE entries SET {column} = CAST(x'{raw.hex()}' AS TEXT) WHERE key = 'turn:t1:prompt'")
    told: list[str] = []
    store = SqliteStore(path, on_repair=told.append)
    assert await store.entries("s1") == [entry._replace(seq=n + 1) for n, entry in enumerate(steps(1))]
    assert await store.position("s1", "turn:t1:prompt") == 1
    assert len(told) == 1
    assert f"({column})" in told[0]
    await store.aclose()


async def test_a_store_that_cannot_be_written_is_read_all_the_same(path):
    damage(path, "UPDATE sessions SET title = CAST(x'61ff' AS TEXT) WHERE session_id = 's1'")
    damage(path, "UPDATE entries SET kind = CAST(x'61ff' AS TEXT) WHERE key = 'turn:t1:prompt'")
    store = SqliteStore(path, patience=0.05)
    await listed(store)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        damage_again = "UPDATE sessions SET title = CAST(x'61ff' AS TEXT) WHERE session_id = 's1'"
        other.execute(damage_again)
        other.execute("BEGIN IMMEDIATE")
        assert (await listed(store))["s1"].title == "a\ufffd"
        assert [entry.kind for entry in await store.entries("s1")] == ["a\ufffd", "reply"]
        other.execute("ROLLBACK")
    await store.aclose()


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("column", ["fence", "holder", "owner", "expires_at"])
async def test_a_damaged_lease_shuts_nobody_out_for_good(path, column, value):
    now = 1_000_000.0
    store = SqliteStore(path, clock=lambda: now)
    await store.leases.take("s1", Holder("gone", "window", 1, "far", "elsewhere", "1"))
    await store.aclose()
    damage(path, f"UPDATE leases SET {column} = {value}")
    store = SqliteStore(path, clock=lambda: now + 21.0)
    lease = await store.leases.take("s1", Holder("mine", "window", 2, "far", "elsewhere", "2"))
    await store.append("s1", [StoredEntry("t9", "k", "reply", b"{}")], lease=lease)
    await store.leases.release(lease)
    assert await store.delete_session("s1")
    await store.aclose()


async def test_a_lease_that_never_ends_is_none(path):
    store = SqliteStore(path)
    await store.leases.take("s1", Holder("gone", "window", 1, "far", "elsewhere", "1"))
    await store.aclose()
    damage(path, "UPDATE leases SET expires_at = 9e999")
    store = SqliteStore(path)
    assert await store.purge("2027") == 3
    await store.aclose()


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
async def test_a_damaged_place_in_the_index_is_made_anew(path, value):
    store = SqliteStore(path)
    assert len(await store.search("s1", "answer", limit=5)) == 1
    await store.aclose()
    damage(path, f"UPDATE recalls SET seq = {value}")
    store = SqliteStore(path)
    await store.append("s1", [StoredEntry("t1", "k", "reply", b'{"text":"another answer"}')])
    assert [hit.seq for hit in await store.search("s1", "answer", limit=5)] == [3, 2]
    await store.aclose()


@pytest.mark.parametrize("column", HEAD)
async def test_who_watches_sees_the_others(path, column):
    damage(path, f"UPDATE sessions SET {column} = CAST(x'61ff62' AS TEXT) WHERE session_id = 's1'")
    store, other = SqliteStore(path), SqliteStore(path)
    with trio.fail_after(10):
        async with store.watch() as changes:
            await other.append("s2", [StoredEntry("t9", "k", "reply", b"{}")])
            while "s2" not in await anext(changes):
                pass
    await store.aclose()
    await other.aclose()


async def test_an_absurd_number_is_not_counted_on_from(path):
    damage(path, "UPDATE sessions SET number = 4611686018427387904 WHERE session_id = 's2'")
    store = SqliteStore(path)
    await store.create_session(record("s9"))
    await store.append("s9", steps(9))
    assert len(await keys(store, "s9")) == 2
    assert set(await listed(store)) == {"s0", "s1", "s2", "s9"}
    await store.aclose()


async def test_a_full_session_says_so_and_writes_into_no_other(path):
    damage(path, "UPDATE entries SET place = (place >> 32) << 32 | 4294967295 WHERE key = 'turn:t1:iter:0'")
    store = SqliteStore(path)
    with pytest.raises(StoreError, match="full"):
        await store.append("s1", [StoredEntry("t9", "k", "reply", b"{}")])
    assert len(await keys(store, "s2")) == 2
    await store.aclose()


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("column", [*HEAD, *ENTRY])
async def test_a_repair_keeps_damaged_rows(path, column, value):
    table, where = (
        ("sessions", "session_id = 's1'") if column in HEAD else ("entries", "key = 'turn:t1:prompt'")
    )
    damage(path, f"UPDATE {table} SET {column} = {value} WHERE {where}")
    assert "3 sessions and 6 entries" in rebuild(path, timeout=1.0)
    store = SqliteStore(path)
    assert len(await listed(store)) == 3
    with closing(connect(path, 1.0)) as connection:
        assert [*mend_cells.damaged_heads(connection), *mend_cells.damaged_entries(connection)] == []
    await store.aclose()
