"""A PostgreSQL server that stands still: nobody waits for long, nothing is lost, doubled or overwritten."""

from collections.abc import Awaitable, Callable
from functools import partial
from hashlib import sha256

import pytest
import trio
import trio.testing

from runtime.store.common.faults import StoreTrouble, TroubleKind
from runtime.store.postgres.store import PostgresStore
from runtime.store.resilient.store import ResilientStore
from runtime.values.stored import HeadChange, Holder
from tests.runtime.store.helpers import entry, keys, record
from tests.support.postgres import Server

pytestmark = pytest.mark.system

HEARD_SECONDS = 1.0
"""How long a cancel may take."""


@pytest.fixture(scope="module")
def server():
    """A server of our own, to be stopped."""
    made = Server()
    made.start()
    yield made
    made.remove()


@pytest.fixture
def address(server, request):
    """A database of the test's own."""
    name = "t" + sha256(request.node.name.encode()).hexdigest()[:16]
    server.ask(f"CREATE DATABASE {name}")
    return server.address(name)


@pytest.fixture
async def stored(address):
    """A store with one session, whose connections are open."""
    made = PostgresStore(address)
    await made.create_session(record())
    await made.append("s1", [entry("old")], head=HeadChange(state="old"))
    yield made
    await made.aclose()


async def given_up(call: Callable[[], Awaitable[object]]) -> float:
    """How long a call that is under way holds up its cancellation."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(call)
        await trio.sleep(0.3)
        began = trio.current_time()
        nursery.cancel_scope.cancel()
    return trio.current_time() - began


async def reached(store: PostgresStore, wanted: list[str]) -> None:
    """Wait until the database has exactly these entries."""
    with trio.fail_after(30):
        while await keys(store) != wanted:  # noqa: ASYNC110 - it tells nobody
            await trio.sleep(0.02)


async def test_what_it_does_not_take_is_kept_told_and_stored_in_order_when_it_goes_on(server, stored):
    told: list[str] = []
    store = ResilientStore(stored, on_trouble=told.append, name="there", patience=0.5)
    lease = await store.leases.take("s1", Holder("me"))
    with server.standing_still():
        began = trio.current_time()
        for key in "abc":
            await store.append("s1", [entry(key)], head=HeadChange(state=key), lease=lease)
        # One wait for all of them.
        assert trio.current_time() - began < 5
        assert [len(told), "there stands still" in told[0]] == [1, True]
    await reached(stored, ["old", "a", "b", "c"])
    head = await stored.session("s1")
    assert head is not None
    assert head.state == "c"
    await store.leases.release(lease)
    with trio.fail_after(30):
        while len(told) < 2:  # noqa: ASYNC110 - it tells nobody
            await trio.sleep(0.02)
    assert "can be written again" in told[1]


async def test_a_cancel_is_heard_whatever_is_asked(server, stored):
    async def watch() -> None:
        async with stored.watch() as changes:
            async for _ in changes:
                pass

    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "append": lambda: stored.append("s1", [entry("a")]),
        "create": lambda: stored.create_session(record("s2")),
        "read": lambda: stored.session("s1"),
        "take": lambda: stored.leases.take("s1", Holder("other")),
        "watch": watch,
    }
    taken = {}
    with server.standing_still():
        for name, call in calls.items():
            taken[name] = await given_up(call)
    assert {name for name, seconds in taken.items() if seconds > HEARD_SECONDS} == set()


async def test_while_a_change_stands_still_a_read_is_not_waited_for_long(server, stored):
    with server.standing_still():
        await given_up(partial(_append, stored, "a", "late"))
        began = trio.current_time()
        with pytest.raises(StoreTrouble) as caught:
            await stored.session("s1")
        assert trio.current_time() - began < 10
    assert caught.value.kind is TroubleKind.STALLED
    await reached(stored, ["old", "a"])


async def test_what_is_made_late_overwrites_nothing_newer(server, stored):
    async with trio.open_nursery() as nursery:
        with server.standing_still():
            await given_up(partial(_append, stored, "a", "late"))
            nursery.start_soon(_append, stored, "b", "newer")
            await trio.testing.wait_all_tasks_blocked()
    head = await stored.session("s1")
    assert head is not None
    assert [await keys(stored), head.state] == [["old", "a", "b"], "newer"]


async def _append(store: PostgresStore, key: str, state: str) -> None:
    await store.append("s1", [entry(key)], head=HeadChange(state=state))


@pytest.mark.parametrize("kept", [False, True])
async def test_a_close_does_not_wait_for_it_for_ever(server, address, kept):
    told: list[str] = []
    store = ResilientStore(PostgresStore(address), on_trouble=told.append, patience=0.5)
    await store.create_session(record())
    lease = await store.leases.take("s1", Holder("me"))
    with server.standing_still():
        if kept:
            await store.append("s1", [entry("b")], lease=lease)
        began = trio.current_time()
        with trio.move_on_after(0.5):
            await store.aclose()
        assert trio.current_time() - began < 0.5 + HEARD_SECONDS
        assert [one for one in told if "s1" in one] == ([told[-1]] if kept else [])
