"""Leases between processes: renewed while a process lives, free when it was killed, at no commit's cost."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
import trio

from runtime.conversation.lease import is_gone, new_holder
from runtime.store.common.faults import TroubleKind
from runtime.store.resilient.store import ResilientStore
from runtime.store.sqlite import leases
from runtime.store.sqlite.store import SqliteStore
from runtime.values.errors import LeaseLost, SessionBusy
from tests.contracts.test_store_leases import GONE
from tests.runtime.store.helpers import LOCK_HOLDER, entry, keys, line_of, python, record, release
from tests.runtime.store.test_damage import integrity, overwrite, pages_of
from tests.runtime.store.test_resilient import Patient


@pytest.fixture
def path(tmp_path):
    """Where the store lies."""
    return tmp_path / "s.db"


@pytest.fixture
async def store(path):
    """A store with one session."""
    made = SqliteStore(path, patience=0.2)
    await made.create_session(record())
    yield made
    await made.aclose()


@pytest.fixture
def quick(monkeypatch):
    """Leases are renewed all the time."""
    monkeypatch.setattr(leases, "RENEW_SECONDS", 0.01)


def end_of(path: Path) -> float:
    """When the lease of the first session ends."""
    with closing(sqlite3.connect(path, timeout=10)) as connection:
        return float(connection.execute("SELECT expires_at FROM leases WHERE session = 1").fetchone()[0])


async def later(path: Path, end: float) -> bool:
    """Whether the lease's end moves on, in ten seconds of real time at most: another thread renews it."""
    for _ in range(200):
        if end_of(path) > end:
            return True
        await trio.sleep(0.05)
    return False


async def test_a_lease_is_renewed_while_nothing_is_written(store, path, quick):
    await store.leases.take("s1", new_holder())
    assert await later(path, end_of(path))


async def test_a_lease_is_renewed_with_other_commits(store, path, monkeypatch):
    await store.leases.take("s1", new_holder())
    await store.create_session(record("s2"))
    end = end_of(path)
    monkeypatch.setattr(leases, "RENEW_SECONDS", 0.0)
    commits: list[str] = []
    await store._writer.run(lambda connection: connection.set_trace_callback(commits.append))
    await store.append("s2", [entry("k")])
    assert end_of(path) > end
    first = commits.index("COMMIT", commits.index("COMMIT") + 1)
    assert any(sql.startswith("UPDATE leases") for sql in commits[:first])


async def test_an_append_costs_no_renewal_before_it_is_due(store):
    lease = await store.leases.take("s1", new_holder())
    commits: list[str] = []
    await store._writer.run(lambda connection: connection.set_trace_callback(commits.append))
    await store.append("s1", [entry("k")], lease=lease)
    assert not [sql for sql in commits if sql.startswith(("UPDATE", "PRAGMA"))]


async def test_a_renewal_is_not_synced_and_the_next_commit_is(store, path, quick):
    await store.leases.take("s1", new_holder())
    assert await later(path, end_of(path))
    modes: list[object] = []
    await store._writer.run(
        lambda connection: modes.append(connection.execute("PRAGMA synchronous").fetchone()[0])
    )
    assert modes == [2]


async def test_a_lease_that_was_lost_is_noticed_by_the_renewal(store, quick):
    clock = time.time
    late = SqliteStore(store._file.path, clock=lambda: clock() + 100)
    lease = await store.leases.take("s1", new_holder())
    assert not store.leases.is_lost(lease)
    await late.leases.take("s1", new_holder("new"))
    for _ in range(200):
        if store.leases.is_lost(lease):
            break
        await trio.sleep(0.05)
    assert store.leases.is_lost(lease)
    await late.aclose()


HOLDER = """
    import sys, trio
    from pathlib import Path
    from runtime.conversation.lease import new_holder
    from runtime.store.sqlite.store import SqliteStore
    from tests.runtime.store.helpers import entry

    async def main():
        store = SqliteStore(Path(sys.argv[1]))
        lease = await store.leases.take("s1", new_holder("the other"))
        await store.append("s1", [entry("theirs")], lease=lease)
        print(lease.fence, flush=True)
        await trio.to_thread.run_sync(sys.stdin.readline)
        await store.leases.release(lease)
        await store.aclose()

    trio.run(main)
"""


async def test_a_living_process_keeps_its_session_and_gives_it_back(store, path):
    with python(HOLDER, path) as other:
        assert line_of(other) == "1"
        with pytest.raises(SessionBusy, match=f"the other .process {other.pid} "):
            await store.leases.take("s1", new_holder())
        other.communicate("\n")
        assert (await store.leases.take("s1", new_holder())).fence == 2


async def test_a_killed_process_loses_its_session_at_once(store, path):
    with python(HOLDER, path) as other:
        assert line_of(other) == "1"
        other.kill()
        # Not waited for: a process that nobody has asked about yet still has its number.
        with trio.fail_after(10):
            lease = await take_soon(store)
    assert (lease.fence, lease.last_seq) == (2, 1)
    assert await keys(store) == ["theirs"]


async def take_soon(store: SqliteStore):
    """The lease, as soon as the system has ended the process."""
    while True:
        try:
            return await store.leases.take("s1", new_holder())
        except SessionBusy:
            await trio.sleep(0.01)


def test_a_process_number_that_was_given_away_again_is_no_life():
    me = new_holder()
    assert not is_gone(me)
    assert is_gone(me._replace(started="1"))
    assert not is_gone(me._replace(machine="another", started="1"))
    assert not is_gone(me._replace(machine=""))


async def test_a_repair_of_the_file_takes_no_lease_away(store, path):
    await store.append("s1", [entry(f"k{n}", b"x" * 900) for n in range(50)])
    lease = await store.leases.take("s1", new_holder())
    await store.aclose()
    overwrite(path, pages_of(path, "leases")[0])
    again = SqliteStore(path)
    await again.append("s1", [entry("after")], lease=lease)
    assert (await keys(again))[-1] == "after"
    await again.aclose()
    assert integrity(path) == "ok"


# ---------------------------------------------------------------- a store in trouble


async def test_a_session_goes_on_without_a_lease_while_the_store_is_in_trouble():
    told: list[str] = []
    inner = Locked()
    store = ResilientStore(inner, on_trouble=told.append)
    await store.create_session(record())
    inner.trouble = TroubleKind.LOCKED
    lease = await store.leases.take("s1", new_holder())
    assert lease.fence == 0
    assert "locked" in told[0]
    await store.append("s1", [entry("kept")], lease=lease)
    inner.trouble = None
    assert (await store.leases.take("s1", lease.holder)).fence == 1
    await store.append("s1", [entry("more")], lease=lease)
    assert await keys(inner) == ["kept", "more"]


async def test_what_was_kept_in_memory_does_not_go_into_a_session_that_was_taken_over():
    told: list[str] = []
    inner = Locked()
    store = ResilientStore(inner, on_trouble=told.append)
    await store.create_session(record())
    lease = await store.leases.take("s1", GONE)
    inner.trouble = TroubleKind.FULL
    await store.append("s1", [entry("kept")], lease=lease)
    inner.trouble = None
    await inner.leases.take("s1", new_holder("first"))
    with pytest.raises(LeaseLost):
        await store.append("s1", [], lease=lease)
    assert await keys(inner) == []
    assert any("could not be stored" in line and "in use by first" in line for line in told)


async def test_a_session_that_only_memory_knows_has_nobody_else():
    inner = Locked()
    inner.trouble = TroubleKind.FULL
    store = ResilientStore(inner, on_trouble=lambda _told: None)
    await store.create_session(record())
    inner.trouble = None
    assert (await store.leases.take("s1", new_holder())).fence == 0


class Locked(Patient):
    """A store whose leases cannot be had in trouble either."""

    def __init__(self) -> None:
        super().__init__()
        real, store = self.leases, self

        class Leases:
            async def take(self, session_id, holder):
                store._write()
                return await real.take(session_id, holder)

            release = staticmethod(real.release)
            is_lost = staticmethod(real.is_lost)

        self.leases = Leases()


async def test_a_lease_is_not_taken_past_another_program_s_lock(store, path):
    with python(LOCK_HOLDER, path) as other:
        assert line_of(other) == "locked"
        resilient = ResilientStore(store, on_trouble=lambda _told: None)
        assert (await resilient.leases.take("s1", new_holder())).fence == 0
        release(other)
    assert (await resilient.leases.take("s1", new_holder())).fence == 1
