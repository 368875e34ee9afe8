"""Commits without the writer's thread: only where they will be quick, and nothing else changes."""

import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import trio

from runtime.errors import StoreError
from runtime.store import pace, writer
from runtime.store.changes import Work
from runtime.store.pulse import Pulse
from runtime.store.storefile import StoreFile
from runtime.store.writer import Writer

HERE = threading.get_ident


class Seen:
    """Adds a row to a table of its own, and remembers the threads in which that was done."""

    def __init__(self) -> None:
        self.threads: list[int] = []

    def __call__(self, connection: sqlite3.Connection) -> None:
        self.threads.append(HERE())
        connection.execute("CREATE TABLE IF NOT EXISTS seen (number INTEGER, filler TEXT)")
        connection.execute("INSERT INTO seen VALUES (?, ?)", (len(self.threads), "x" * 500))


@pytest.fixture
async def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Writer]:
    """A writer on a local disk, for which any commit is quick."""
    monkeypatch.setattr(pace, "QUICK_SECONDS", 60.0)
    monkeypatch.setattr(pace, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(writer, "is_local", lambda folder: True)
    one = make(tmp_path)
    yield one
    await one.aclose()


def make(folder: Path) -> Writer:
    file = StoreFile(folder / "s.db", patience=0.2)
    return Writer(
        file.path,
        open_file=file.open_writer,
        repair=lambda: None,
        patience=0.2,
        pulse=Pulse(lambda: 0.0),
    )


async def often(made: Writer, work: Work, times: int = pace.ENOUGH) -> None:
    for _ in range(times):
        await made.run(work, at_once=True)


def rows(folder: Path) -> list[int]:
    with sqlite3.connect(folder / "s.db") as connection:
        return [number for (number,) in connection.execute("SELECT number FROM seen")]


async def test_the_first_commits_go_to_the_thread_and_the_next_one_does_not(made: Writer, tmp_path: Path):
    seen = Seen()
    await often(made, seen)
    assert HERE() not in seen.threads
    await made.run(seen, at_once=True)
    assert seen.threads[-1] == HERE()
    assert rows(tmp_path) == list(range(1, pace.ENOUGH + 2))


async def test_only_who_may_does(made: Writer):
    seen = Seen()
    await often(made, seen)
    await made.run(seen)
    assert seen.threads[-1] != HERE()


async def slower(made: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "QUICK_SECONDS", 0.0)
    await often(made, Seen(), 1)


async def very_slow(made: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    await often(made, Seen(), pace.MOST)
    monkeypatch.setattr(pace, "QUICK_SECONDS", 0.0)
    monkeypatch.setattr(pace, "SLOW_SECONDS", 0.0)
    await often(made, Seen(), 1)


async def soon(_made: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "PAUSE_SECONDS", 60.0)


async def busy(made: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    class Held:
        """A lock that somebody else has whenever it is asked for at once."""

        def __init__(self) -> None:
            self._lock = threading.Lock()

        def acquire(self, *, blocking: bool) -> bool:
            assert not blocking
            return False

        def __enter__(self) -> None:
            self._lock.acquire()

        def __exit__(self, *_: object) -> None:
            self._lock.release()

    monkeypatch.setattr(made, "_busy", Held())


async def merging(made: Writer, _monkeypatch: pytest.MonkeyPatch) -> None:
    made.wipe_log()


@pytest.mark.parametrize("reason", [slower, very_slow, soon, busy, merging])
async def test_a_reason_for_the_thread(
    made: Writer, monkeypatch: pytest.MonkeyPatch, reason: Callable[..., object]
):
    seen = Seen()
    await often(made, seen)
    await reason(made, monkeypatch)  # type: ignore[misc]
    await made.run(seen, at_once=True)
    assert seen.threads[-1] != HERE()


async def test_a_slow_one_among_many_quick_ones_is_no_reason(made: Writer, monkeypatch: pytest.MonkeyPatch):
    seen = Seen()
    await often(made, seen, pace.MOST)
    with monkeypatch.context() as patch:
        await slower(made, patch)
    await made.run(seen, at_once=True)
    assert seen.threads[-1] == HERE()


async def test_another_machines_disk_is_a_reason_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pace, "QUICK_SECONDS", 60.0)
    monkeypatch.setattr(pace, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(writer, "is_local", lambda folder: False)
    remote, seen = make(tmp_path), Seen()
    await often(remote, seen, pace.ENOUGH * 2)
    assert HERE() not in seen.threads
    await remote.aclose()


async def test_what_fails_here_is_tried_by_the_thread_which_says_why(made: Writer, tmp_path: Path):
    seen, threads = Seen(), []

    def refuse(connection: sqlite3.Connection) -> None:
        threads.append(HERE())
        connection.execute("INSERT INTO seen VALUES (99, '')")
        raise StoreError("no")

    await often(made, seen)
    with pytest.raises(StoreError, match=r"^no$"):
        await made.run(refuse, at_once=True)
    assert [thread == HERE() for thread in threads] == [True, False]
    assert 99 not in rows(tmp_path)
    await made.run(seen, at_once=True)
    assert seen.threads[-1] != HERE()


async def test_behind_another_programs_lock_the_loop_goes_on(made: Writer, tmp_path: Path):
    seen = Seen()
    await often(made, seen)
    other = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(StoreError, match=r"lock|busy|another"):
            await made.run(seen, at_once=True)
    finally:
        other.execute("ROLLBACK")
        other.close()
    await made.run(seen, at_once=True)
    assert rows(tmp_path)[-1] == len(seen.threads)


async def test_a_file_that_was_replaced_is_not_written_to(made: Writer, tmp_path: Path):
    await often(made, Seen())
    (tmp_path / "s.db").rename(tmp_path / "old.db")
    with pytest.raises(StoreError, match="removed or replaced"):
        await made.run(Seen(), at_once=True)


async def test_a_cancellation_before_it_stops_it(made: Writer, tmp_path: Path):
    seen = Seen()
    await often(made, seen)
    with trio.CancelScope() as scope:
        scope.cancel()
        await made.run(seen, at_once=True)
    assert scope.cancelled_caught
    assert len(rows(tmp_path)) == len(seen.threads) == pace.ENOUGH


async def test_a_log_grown_without_the_thread_is_merged(made: Writer, tmp_path: Path):
    """The thread sleeps without an end then; one of the commits wakes it."""
    seen = Seen()
    await often(made, seen, 80)
    assert seen.threads[pace.ENOUGH :].count(HERE()) > 60
    assert (tmp_path / "s.db").stat().st_size < 20_000
    with trio.fail_after(20):
        while (tmp_path / "s.db").stat().st_size < 20_000:  # noqa: ASYNC110 - it tells nobody
            await trio.sleep(0.01)
    assert len(rows(tmp_path)) == 80
