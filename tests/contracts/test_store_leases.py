"""Who may write to a session: what every store must do about it. Knows the port only."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from runtime.conversation.lease import new_holder
from runtime.store.common.leases import LEASE_SECONDS
from runtime.store.memory import MemoryStore
from runtime.store.postgres.store import PostgresStore
from runtime.store.resilient.store import ResilientStore
from runtime.store.sqlite.store import SqliteStore
from runtime.values.errors import LeaseLost, SessionBusy, StoreError
from runtime.values.stored import HeadChange, Holder, Lease, Store
from tests.contracts.test_store_contract import entry, fail, ids, keys, marked, record
from tests.locks import locked
from tests.support.postgres import address_of

GONE = new_holder("Gone")._replace(pid=2**22 + 1)
"""A holder whose process ended: no process has a number as large."""


class Clock:
    """A clock that stands still until it is moved."""

    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


STORES: dict[str, Callable[[Path, Clock], Store]] = {
    "memory": lambda _folder, clock: MemoryStore(clock),
    "sqlite": lambda folder, clock: locked(
        lambda path: SqliteStore(path, on_repair=fail, clock=clock), folder / "s.db"
    ),
    "resilient-sqlite": lambda folder, clock: locked(
        lambda path: ResilientStore(SqliteStore(path, on_repair=fail, clock=clock), on_trouble=fail),
        folder / "s.db",
    ),
    "postgres": lambda folder, clock: PostgresStore(address_of(folder), clock=clock),
    "resilient-postgres": lambda folder, clock: ResilientStore(
        PostgresStore(address_of(folder), clock=clock), on_trouble=fail
    ),
}


@pytest.fixture
def clock():
    """The store's clock."""
    return Clock()


@pytest.fixture(params=marked(STORES))
async def store(request, tmp_path, clock):
    """Each store in turn, with a session of two entries."""
    made = STORES[request.param](tmp_path, clock)
    await made.create_session(record(1))
    await made.append("s1", [entry("a"), entry("b")])
    yield made
    await made.aclose()


async def refused(store: Store, holder: Holder) -> str:
    """The sentence with which a holder is refused."""
    with pytest.raises(SessionBusy) as caught:
        await store.leases.take("s1", holder)
    return str(caught.value)


async def test_one_holder_at_a_time_and_the_other_learns_who_it_is(store):
    mine, other = new_holder("Zed"), new_holder("acpx")
    lease = await store.leases.take("s1", mine)
    assert lease == Lease("s1", mine, 1, 2)
    sentence = await refused(store, other)
    assert f"in use by Zed (process {os.getpid()} on {mine.host})" in sentence
    await store.append("s1", [entry("c")], lease=lease)
    await store.leases.release(lease)
    taken = await store.leases.take("s1", other)
    assert taken == Lease("s1", other, 2, 3)


async def test_the_refusal_has_the_facts_for_a_program(store):
    await store.leases.take("s1", new_holder("Zed"))
    with pytest.raises(SessionBusy) as caught:
        await store.leases.take("s1", new_holder())
    assert caught.value.data["kind"] == "session_in_use"
    assert caught.value.data["holder"] == {
        "client": "Zed",
        "pid": os.getpid(),
        "host": new_holder().host,
    }


async def test_who_has_it_may_take_it_again(store):
    mine = new_holder()
    assert await store.leases.take("s1", mine) == await store.leases.take("s1", mine)


async def test_reading_needs_no_lease(store):
    await store.leases.take("s1", new_holder())
    assert await keys(store) == ["a", "b"]
    assert await store.position("s1", "b") == 2
    assert await ids(store) == ["s1"]


async def test_a_lease_runs_out_and_then_its_holder_writes_no_more(store, clock):
    old = await store.leases.take("s1", new_holder("old"))
    clock.now += LEASE_SECONDS - 1
    await refused(store, new_holder("new"))
    clock.now += 2
    new = await store.leases.take("s1", new_holder("new"))
    assert new.fence == old.fence + 1
    with pytest.raises(LeaseLost, match="in use by new"):
        await store.append("s1", [entry("late")], head=HeadChange(title="late"), lease=old)
    assert await keys(store) == ["a", "b"]
    assert (await store.session("s1")).title is None
    await store.append("s1", [entry("mine")], lease=new)
    await refused(store, old.holder)


async def test_a_lease_that_ran_out_is_still_good_while_nobody_wants_the_session(store, clock):
    lease = await store.leases.take("s1", new_holder())
    clock.now += 10 * LEASE_SECONDS
    await store.append("s1", [entry("late")], lease=lease)
    assert await keys(store) == ["a", "b", "late"]


async def test_a_stale_fence_is_refused_also_when_the_new_holder_has_left(store, clock):
    old = await store.leases.take("s1", new_holder("old"))
    clock.now += 2 * LEASE_SECONDS
    await store.leases.release(await store.leases.take("s1", new_holder("new")))
    with pytest.raises(LeaseLost, match="went on in another place"):
        await store.append("s1", [entry("late")], lease=old)
    again = await store.leases.take("s1", old.holder)
    assert again.fence == old.fence + 2
    await store.append("s1", [entry("now")], lease=again)


async def test_giving_back_what_was_lost_takes_nothing_from_the_next_one(store, clock):
    old = await store.leases.take("s1", new_holder("old"))
    clock.now += 2 * LEASE_SECONDS
    await store.leases.take("s1", new_holder("new"))
    await store.leases.release(old)
    await refused(store, old.holder)


async def test_a_dead_process_holds_nothing(store):
    assert GONE.machine, "else nothing is known of other processes here"
    lost = await store.leases.take("s1", GONE)
    lease = await store.leases.take("s1", new_holder())
    assert lease.fence == lost.fence + 1


async def test_a_process_elsewhere_may_be_alive(store, clock):
    await store.leases.take("s1", GONE._replace(machine="another machine"))
    await refused(store, new_holder())
    clock.now += LEASE_SECONDS + 1
    await store.leases.take("s1", new_holder())


async def test_without_a_fence_one_writes_only_to_a_free_session(store, clock):
    guest, holder = Lease("s1", new_holder("guest"), 0, -1), new_holder("holder")
    await store.append("s1", [entry("c")], lease=guest)
    lease = await store.leases.take("s1", holder)
    with pytest.raises(SessionBusy, match="in use by holder"):
        await store.append("s1", [entry("d")], lease=guest)
    assert await keys(store) == ["a", "b", "c"]
    await store.leases.release(lease)
    await store.append("s1", [entry("d")], lease=guest)


async def test_a_session_that_is_held_is_neither_deleted_nor_purged(store, clock):
    lease = await store.leases.take("s1", new_holder("Zed"))
    with pytest.raises(SessionBusy, match="Zed"):
        await store.delete_session("s1")
    assert await store.purge("2030") == 0
    await store.leases.release(lease)
    assert await store.delete_session("s1")
    await store.create_session(record(1))
    assert (await store.leases.take("s1", new_holder())).fence == 1


async def test_a_session_that_is_held_can_be_copied(store):
    await store.leases.take("s1", new_holder())
    await store.fork_session(record(2), "s1", up_to=1)
    lease = await store.leases.take("s2", new_holder())
    await store.append("s2", [entry("mine")], lease=lease)


async def test_an_unknown_session_has_no_lease(store):
    with pytest.raises(StoreError, match="not in the store"):
        await store.leases.take("nobody", new_holder())
    await store.leases.release(Lease("nobody", new_holder(), 1, 0))


async def test_of_many_who_ask_at_once_one_gets_it(store):
    outcomes: list[str] = []

    async def ask(holder: Holder) -> None:
        try:
            lease = await store.leases.take("s1", holder)
        except SessionBusy:
            outcomes.append("refused")
        else:
            outcomes.append(f"fence {lease.fence}")

    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(ask, new_holder(f"w{number}"))
    assert sorted(outcomes) == ["fence 1", *["refused"] * 7]


@pytest.mark.parametrize("client", ["", "Zed ✓ 1.0", "a\x1fb", "x" * 300])
async def test_any_name_of_a_client_is_kept(store, client):
    await store.leases.take("s1", new_holder(client))
    assert (client.replace("\x1f", " ") or "another window") in (await refused(store, new_holder())).replace(
        "\x1f", " "
    )
