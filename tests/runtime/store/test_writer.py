"""The writer's thread: it alone waits for the disk, whatever the last commits were like."""

import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
import trio.lowlevel
import trio.testing

from runtime.store.sqlite.file import StoreFile
from runtime.store.sqlite.leases import Pulse
from runtime.store.sqlite.writer import Writer

MANY_QUICK = 40


class Seen:
    """Adds a row to a table of its own, and remembers the threads in which that was done."""

    def __init__(self) -> None:
        self.threads: list[int] = []

    def __call__(self, connection: sqlite3.Connection) -> None:
        self.threads.append(threading.get_ident())
        connection.execute("CREATE TABLE IF NOT EXISTS seen (number INTEGER, filler TEXT)")
        connection.execute("INSERT INTO seen VALUES (?, ?)", (len(self.threads), "x" * 500))


@pytest.fixture
async def made(tmp_path: Path) -> AsyncIterator[Writer]:
    file = StoreFile(tmp_path / "s.db", patience=0.2)
    one = Writer(
        file.path, open_file=file.open_writer, repair=lambda: None, patience=0.2, pulse=Pulse(lambda: 0.0)
    )
    yield one
    await one.aclose()


def rows(folder: Path) -> list[int]:
    with sqlite3.connect(folder / "s.db") as connection:
        return [number for (number,) in connection.execute("SELECT number FROM seen")]


async def test_however_quick_commits_are_one_thread_that_is_not_the_loops_makes_them(
    made: Writer, tmp_path: Path
):
    seen = Seen()
    for _ in range(MANY_QUICK):
        await made.run(seen)
    assert len(set(seen.threads)) == 1
    assert threading.get_ident() not in seen.threads
    assert rows(tmp_path) == list(range(1, MANY_QUICK + 1))


async def test_a_commit_that_stands_still_after_quick_ones_holds_up_nothing_else(made: Writer):
    begun, go_on = trio.Event(), threading.Event()
    token = trio.lowlevel.current_trio_token()
    seen, ticks = Seen(), 0

    def stand_still(connection: sqlite3.Connection) -> None:
        token.run_sync_soon(begun.set)
        assert go_on.wait(20)
        seen(connection)

    for _ in range(MANY_QUICK):
        await made.run(seen)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(made.run, stand_still)
        with trio.fail_after(10):
            await begun.wait()
            for _ in range(100):
                await trio.lowlevel.checkpoint()
                ticks += 1
        go_on.set()
    assert ticks == 100
    assert len(seen.threads) == MANY_QUICK + 1


async def test_a_cancel_is_heard_although_the_commit_stands_still(made: Writer):
    """The change is made when the thread goes on, and what was sent behind it and given up is not."""
    begun, go_on, seen, given_up = trio.Event(), threading.Event(), Seen(), Seen()
    token = trio.lowlevel.current_trio_token()

    def stand_still(connection: sqlite3.Connection) -> None:
        token.run_sync_soon(begun.set)
        assert go_on.wait(20)
        seen(connection)

    try:
        with trio.fail_after(10):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(made.run, stand_still)
                await begun.wait()
                nursery.start_soon(made.run, given_up)
                await trio.testing.wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()
        assert [len(seen.threads), nursery.cancel_scope.cancelled_caught] == [0, True]
    finally:
        go_on.set()
    await made.run(seen)
    assert [len(seen.threads), len(given_up.threads)] == [2, 0]


async def test_a_change_that_was_cancelled_before_it_was_sent_is_not_made(made: Writer):
    seen = Seen()
    with trio.CancelScope() as scope:
        scope.cancel()
        await made.run(seen)
    assert scope.cancelled_caught
    await made.run(lambda _connection: None)
    assert seen.threads == []


async def test_a_long_log_is_merged_at_rest(made: Writer, tmp_path: Path):
    seen = Seen()
    for _ in range(80):
        await made.run(seen)
    with trio.fail_after(20):
        while (tmp_path / "s.db").stat().st_size < 20_000:  # noqa: ASYNC110 - it tells nobody
            await trio.sleep(0.01)
    assert len(rows(tmp_path)) == 80
