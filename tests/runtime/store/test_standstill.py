"""A store that stands still: nobody waits for long, nothing that was given is dropped, and it is told."""

import sqlite3
import threading

import pytest
import trio

from runtime.store.resilient.standstill import GRACE_SECONDS, PATIENCE_SECONDS
from runtime.store.resilient.store import ResilientStore
from runtime.store.sqlite.store import SqliteStore
from runtime.values.errors import LeaseLost, StoreError
from runtime.values.stored import HeadChange, Holder
from tests.runtime.store.helpers import entry, keys, record
from tests.support.stalling import Stalling

ME = Holder("me")


@pytest.fixture
def told():
    """What the person was told."""
    return []


@pytest.fixture
def inner():
    """The store that can stand still."""
    return Stalling()


@pytest.fixture
async def store(inner, told):
    """The store under test, with a session that is stored."""
    made = ResilientStore(inner, on_trouble=told.append, name="/s.db")
    await made.create_session(record())
    return made


async def given_up(store, key="a", **given):
    """An append of a caller who may wait no longer a second after it began; how long it took after that."""
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:

            async def append() -> None:
                await store.append("s1", [entry(key)], **given)

            nursery.start_soon(append)
            await trio.sleep(1)
            began = trio.current_time()
            scope.cancel()
    return trio.current_time() - began


async def test_a_write_is_waited_for_and_then_kept_and_told(store, inner, told, autojump_clock):
    inner.stand_still()
    began = trio.current_time()
    await store.append("s1", [entry("a")])
    assert trio.current_time() - began == pytest.approx(PATIENCE_SECONDS)
    assert [told[0].split(":")[0], len(told)] == ["The session store /s.db stands still", 1]
    assert "kept in memory" in told[0]
    assert await keys(store) == ["a"]


async def test_as_long_as_it_stands_nobody_waits_any_more(store, inner, told, autojump_clock):
    inner.stand_still()
    await store.append("s1", [entry("a")])
    began = trio.current_time()
    await store.append("s1", [entry("b")])
    await store.create_session(record("s2"))
    await store.append("s2", [entry("c")], head=HeadChange(title="T"))
    await store.fork_session(record("s3"), "s1", up_to=2)
    assert (await store.leases.take("s1", ME)).fence == 0
    assert trio.current_time() == began
    assert [await keys(store, name) for name in ("s1", "s2", "s3")] == [["a", "b"], ["c"], ["a", "b"]]
    page = await store.list_sessions(cwd=None, cursor=None, limit=9)
    assert {head.session_id: head.title for head in page.sessions} == {"s1": None, "s2": "T", "s3": None}
    assert len(told) == 1


async def test_when_it_goes_on_all_is_stored_without_another_write_and_told(
    store, inner, told, autojump_clock
):
    inner.stand_still()
    await store.append("s1", [entry("a")], head=HeadChange(state="1"))
    await store.append("s1", [entry("b"), entry("c")], head=HeadChange(state="2"))
    await store.create_session(record("s2"))
    await inner.go_on()
    await trio.sleep(1)
    assert [await keys(inner), await keys(inner, "s2")] == [["a", "b", "c"], []]
    assert (await inner.session("s1")).state == "2"
    assert [len(told), "can be written again" in told[-1]] == [2, True]
    await store.append("s1", [entry("d")])
    assert await keys(inner) == ["a", "b", "c", "d"]


async def test_who_may_wait_no_longer_leaves_it_in_memory(store, inner, told, autojump_clock):
    inner.stand_still()
    assert await given_up(store) <= GRACE_SECONDS + 0.01
    assert [await keys(store), await keys(inner), len(told)] == [["a"], [], 1]
    await inner.go_on()
    await trio.sleep(1)
    assert await keys(inner) == ["a"]


async def test_what_is_quick_is_stored_although_its_caller_was_cancelled(store, inner, told, autojump_clock):
    inner.stand_still()

    async def go_on_soon() -> None:
        await trio.sleep(1 + GRACE_SECONDS / 2)
        await inner.go_on()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(go_on_soon)
        await given_up(store)
    assert [await keys(inner), told] == [["a"], []]


async def test_who_waits_behind_another_write_of_the_session_keeps_its_place(store, inner, autojump_clock):
    inner.stand_still()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.append, "s1", [entry("a")])
        await trio.testing.wait_all_tasks_blocked()
        assert await given_up(store, "b") <= 2 * GRACE_SECONDS
        await store.append("s1", [entry("c")])
        with trio.fail_after(PATIENCE_SECONDS + 1):
            while len(await keys(store)) < 3:  # noqa: ASYNC110 - it tells nobody
                await trio.sleep(0.1)
        assert await keys(store) == ["a", "b", "c"]
    await inner.go_on()
    await trio.sleep(1)
    assert await keys(inner) == ["a", "b", "c"]


async def test_reads_go_on_and_show_nothing_twice_while_it_catches_up(store, inner, autojump_clock):
    await store.append("s1", [entry("old")])
    inner.stand_still()
    for key in "abc":
        await store.append("s1", [entry(key)])
    seen = [[(line.seq, line.key) for line in await store.entries("s1")]]
    # The change that was given up is made; of the others the store was not asked yet.
    await inner._late.pop(0)()
    assert await keys(inner) == ["old", "a"]
    seen.append([(line.seq, line.key) for line in await store.entries("s1")])
    assert [await store.position("s1", key) for key in ("old", "a", "c")] == [1, 2, 4]
    assert [line.key for line in await store.entries("s1", after=1, limit=2)] == ["a", "b"]
    await inner.go_on()
    await trio.sleep(1)
    seen.append([(line.seq, line.key) for line in await inner.entries("s1")])
    assert seen == [[(1, "old"), (2, "a"), (3, "b"), (4, "c")]] * 3


async def test_a_session_whose_making_was_given_up_is_made_once(store, inner, told, autojump_clock):
    inner.stand_still()
    await store.create_session(record("s2"))
    await store.append("s2", [entry("a")])
    await inner.go_on()
    await trio.sleep(1)
    assert await keys(inner, "s2") == ["a"]
    assert not [one for one in told if "could not be stored" in one]
    with pytest.raises(StoreError, match="exists already"):
        await store.create_session(record("s2"))


async def test_a_lease_is_waited_for_and_then_done_without(store, inner, told, autojump_clock):
    inner.stand_still()
    began = trio.current_time()
    lease = await store.leases.take("s1", ME)
    assert trio.current_time() - began == pytest.approx(PATIENCE_SECONDS)
    assert [lease.fence, len(told)] == [0, 1]
    await store.append("s1", [entry("a")], lease=lease)
    assert trio.current_time() - began == pytest.approx(PATIENCE_SECONDS)
    await inner.go_on()
    await trio.sleep(1)
    assert [await keys(inner), "again" in told[-1]] == [["a"], True]
    assert (await store.leases.take("s1", ME)).fence == 1


async def test_a_lease_is_not_given_back_to_a_store_that_stands_still(store, inner, autojump_clock):
    lease = await store.leases.take("s1", ME)
    inner.stand_still()
    await store.append("s1", [entry("a")])
    began = trio.current_time()
    await store.leases.release(lease)
    assert trio.current_time() == began


async def test_what_was_lost_meanwhile_is_told(store, inner, told, autojump_clock):
    lease = await store.leases.take("s1", ME)
    inner.stand_still()
    await store.append("s1", [entry("a")], lease=lease)
    inner._late.clear()
    await inner._leases.release(lease)
    await inner._leases.take("s1", Holder("other"))
    await inner.go_on()
    await trio.sleep(1)
    assert await keys(inner) == []
    assert [one for one in told if "could not be stored" in one]
    with pytest.raises(LeaseLost):
        await store.append("s1", [entry("b")], lease=lease)


async def test_an_orderly_close_waits_and_stores_what_is_kept(store, inner, told, autojump_clock):
    inner.stand_still()
    await store.append("s1", [entry("a")])
    await store.append("s1", [entry("b")])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.aclose)
        await trio.sleep(PATIENCE_SECONDS / 2)
        await inner.go_on()
    assert list(inner._transcripts["s1"].seqs) == ["a", "b"]
    assert "again" in told[-1]


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_close_that_waits_in_vain_says_what_is_lost(store, inner, told, cancelled, autojump_clock):
    inner.stand_still()
    await store.append("s1", [entry("a")])
    began = trio.current_time()
    with trio.move_on_after(1 if cancelled else 1000):
        await store.aclose()
    limit = 1 if cancelled else PATIENCE_SECONDS
    assert trio.current_time() - began <= limit + 2 * GRACE_SECONDS
    assert "s1" in told[-1]


async def test_a_commit_that_was_given_up_and_made_later_counts_once(tmp_path, told):
    """The writer's thread stands in the middle of it; what it makes in the end is what memory holds."""
    file = SqliteStore(tmp_path / "s.db")
    await file.create_session(record())
    store = ResilientStore(file, on_trouble=told.append, patience=0.2)
    gate = threading.Event()

    def stand_still(_connection: sqlite3.Connection) -> None:
        assert gate.wait(20)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(file._writer.run, stand_still)
        await trio.testing.wait_all_tasks_blocked()
        for key in "abc":
            await store.append("s1", [entry(key)], head=HeadChange(state=key))
        assert [await keys(store), await keys(file)] == [["a", "b", "c"], []]
        gate.set()
    with trio.fail_after(20):
        while len(await keys(file)) < 3:  # noqa: ASYNC110 - it tells nobody
            await trio.sleep(0.01)
    head = await file.session("s1")
    assert head is not None
    assert [await keys(file), head.state] == [["a", "b", "c"], "c"]
    await store.aclose()
    assert len(told) == 2
