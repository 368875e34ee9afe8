"""Ten thousand sessions in one file: listed page by page, through an index, each page at once."""

import sqlite3
import statistics
import time
from contextlib import closing

import pytest

from runtime.store.sqlite.schema import SESSION_COLUMNS
from runtime.store.sqlite.store import SqliteStore
from tests.runtime.store.helpers import record

COUNT = 10_000
PAGE = 50


@pytest.fixture
async def store(tmp_path):
    """A store of ten thousand sessions in three folders."""
    made = SqliteStore(tmp_path / "s.db")
    await made.create_session(record("first"))
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as connection:
        connection.execute("BEGIN")
        connection.executemany(
            f"INSERT INTO sessions ({SESSION_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",
            (
                (f"s{n}", f"/w{n % 3}", "2026", f"2026-{n * 7919 % COUNT:05}", f"Title {n}", "{}")
                for n in range(COUNT)
            ),
        )
        connection.execute("COMMIT")
    yield made
    await made.aclose()


@pytest.mark.parametrize(("cwd", "count"), [(None, COUNT + 1), ("/w1", COUNT // 3)])
async def test_every_page_comes_at_once(store, cwd, count):
    seen: list[str] = []
    seconds: list[float] = []
    cursor = None
    while True:
        begun = time.perf_counter()
        page = await store.list_sessions(cwd=cwd, cursor=cursor, limit=PAGE)
        seconds.append(time.perf_counter() - begun)
        seen += [head.session_id for head in page.sessions]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == count
    # The median, as the machine of a test has other things to do; by far the most is much faster.
    assert statistics.median(seconds) < 0.05


async def test_old_ones_go_in_small_steps(store):
    commits: list[str] = []
    await store._writer.run(lambda connection: connection.set_trace_callback(commits.append))
    assert await store.purge("2026-00500") == 500
    assert commits.count("COMMIT") > 20
