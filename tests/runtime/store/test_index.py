"""The full-text index of the SQLite store: made late, in pieces, gone with its session, never needed."""

import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
import trio

from runtime.store.opening import open_store
from runtime.store.sqlite import search_index
from runtime.store.sqlite.store import SqliteStore
from tests.contracts.test_store_search import say, step
from tests.runtime.store.helpers import entry, line_of, python, record
from tests.runtime.store.test_damage import integrity


@pytest.fixture
def path(tmp_path):
    """Where the store lies."""
    return tmp_path / "s.db"


@pytest.fixture
async def store(path):
    """A store with one session."""
    made = SqliteStore(path)
    await made.create_session(record())
    yield made
    await made.aclose()


def tables(path: Path) -> list[str]:
    """The sessions' indexes that are there."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL%'")
        return sorted(row[0] for row in rows)


def progress(path: Path) -> dict[int, int]:
    """How far each session is indexed."""
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("SELECT session, seq FROM recalls"))


async def test_writing_makes_no_index_and_a_search_does(store, path):
    await say(store, "apple", "pear")
    assert tables(path) == []
    assert len(await store.search("s1", "apple", limit=5)) == 1
    assert (tables(path), progress(path)) == (["recall_1"], {1: 2})
    await say(store, *["apple"] * 4)
    assert progress(path) == {1: 2}
    assert len(await store.search("s1", "apple", limit=5)) == 3
    assert progress(path) == {1: 4}


async def test_an_empty_query_makes_no_index(store, path):
    await say(store, "apple")
    assert await store.search("s1", " ?! ", limit=5) == []
    assert await store.search("nobody", "apple", limit=5) == []
    assert tables(path) == []


async def test_a_long_session_is_indexed_in_pieces(store, path, monkeypatch):
    monkeypatch.setattr(search_index, "_BATCH_BYTES", 2000)
    texts = [step("tool", f"k{n}", text=f"result {n} " + "filler " * 100) for n in range(50)]
    await store.append("s1", texts)
    commits: list[str] = []
    await store._writer.run(lambda connection: connection.set_trace_callback(commits.append))
    found = await store.search("s1", "result 33", limit=1)
    assert [hit.key for hit in found] == ["k33"]
    assert commits.count("COMMIT") > 15
    assert progress(path) == {1: 50}


async def test_two_searches_at_once_index_nothing_twice(store, path, monkeypatch):
    monkeypatch.setattr(search_index, "_BATCH_BYTES", 500)
    await store.append("s1", [step("reply", f"k{n}", text=f"apple number {n}") for n in range(200)])
    other = SqliteStore(path)
    counts: list[int] = []

    async def search(where: SqliteStore) -> None:
        counts.append(len(await where.search("s1", "apple", limit=1000)))

    async with trio.open_nursery() as nursery:
        for where in (store, other) * 3:
            nursery.start_soon(search, where)
    await other.aclose()
    assert counts == [200] * 6


SEARCHING = """
    import sys, trio
    from pathlib import Path
    from runtime.store.sqlite import search_index as recall
    from runtime.store.sqlite import SqliteStore

    recall._BATCH_BYTES = 200

    async def main():
        store = SqliteStore(Path(sys.argv[1]))
        write = store._write

        async def told(work):
            await write(work)
            print("indexed", flush=True)

        store._write = told
        await store.search("s1", "apple", limit=1)

    trio.run(main)
"""


async def test_a_kill_while_it_is_made_costs_nothing(store, path):
    await store.append("s1", [step("reply", f"k{n}", text=f"apple number {n}") for n in range(300)])
    for _ in range(3):
        with python(SEARCHING, path) as other:
            assert {line_of(other) for _ in range(5)} <= {"indexed"}
            other.kill()
    assert 0 < progress(path)[1] < 300
    assert len(await store.search("s1", "apple", limit=1000)) == 300
    assert integrity(path) == "ok"


async def test_only_the_sessions_searched_last_have_one(store, path, monkeypatch):
    monkeypatch.setattr(search_index, "KEPT", 3)
    for number in range(2, 7):
        await store.create_session(record(f"s{number}"))
        await say(store, "apple", session_id=f"s{number}")
    for number in (2, 3, 4, 2, 5, 6):
        assert len(await store.search(f"s{number}", "apple", limit=5)) == 1
        await say(store, *["more"] * (number + 1), session_id=f"s{number}")
    assert tables(path) == ["recall_2", "recall_5", "recall_6"]
    assert len(await store.search("s4", "apple", limit=5)) == 1
    assert tables(path) == ["recall_4", "recall_5", "recall_6"]


async def test_a_deleted_session_leaves_no_word_in_any_file(store, path):
    secret = "xyzzyplugh"
    await store.create_session(record("s2"))
    await say(store, *[f"{secret} {n} " + "filler " * 300 for n in range(20)], session_id="s2")
    assert len(await store.search("s2", secret, limit=50)) == 20
    assert await store.delete_session("s2")
    await store.append("s1", [entry("later")])
    for _ in range(200):
        if not left_in(path, secret):
            break
        await trio.sleep(0.05)  # real time: the log goes once the writer has had a moment's rest
    assert left_in(path, secret) == []
    assert tables(path) == []
    assert integrity(path) == "ok"


def left_in(path: Path, word: str) -> list[str]:
    """The files that hold the word."""
    # By another process: here that would drop SQLite's locks.
    found = subprocess.run(
        ["grep", "-rlaF", word, path.parent], capture_output=True, text=True, timeout=30, check=False
    )
    return [Path(line).name for line in found.stdout.splitlines()]


async def test_without_full_text_search_everything_is_read(store, path, monkeypatch):
    monkeypatch.setattr(search_index, "_FTS5", "SELECT 1 WHERE 0")
    await say(store, "apple", "pear")
    assert [hit.turn_id for hit in await store.search("s1", "pear", limit=5)] == ["t1"]
    assert tables(path) == []


async def test_a_store_that_cannot_be_written_is_searched_all_the_same(store, path):
    await say(store, "apple", "pear")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        locked = open_store(path, on_trouble=lambda _told: None)
        locked._inner._writer._patience = locked._inner._writer._patience_now = 0.05  # type: ignore[attr-defined]
        assert [hit.turn_id for hit in await locked.search("s1", "pear", limit=5)] == ["t1"]
        other.execute("ROLLBACK")
    await locked.aclose()
    assert tables(path) == []
