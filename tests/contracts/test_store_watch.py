"""Seeing what changes: what every store must tell who watches it. Knows the port only."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
import trio.testing

from runtime.conversation.lease import LeasedStore, new_holder
from runtime.values.errors import StoreError
from runtime.values.stored import HeadChange, Store
from tests.contracts.test_store_contract import ALL, SHARED, STORES, entry, record
from tests.runtime.store.helpers import line_of, python

Changes = AsyncIterator[frozenset[str]]


@pytest.fixture(params=ALL)
async def store(request, tmp_path):
    """Each store in turn, with two sessions."""
    made = STORES[request.param](tmp_path)
    for number in (1, 2):
        await made.create_session(record(number))
    yield made
    await made.aclose()


async def told(changes: Changes, *expected: str) -> None:
    """Wait until all of them were told, and nothing else."""
    found: set[str] = set()
    with trio.fail_after(30):
        while not found.issuperset(expected):
            found |= await anext(changes)
    assert found == set(expected)


async def quiet(changes: Changes, seconds: float = 0.4) -> None:
    """Whatever comes once too often is told, and then nothing more."""
    with trio.fail_after(30):
        while True:
            with trio.move_on_after(seconds) as scope:
                await anext(changes)
            if scope.cancelled_caught:
                return


async def test_what_was_before_is_not_told_and_what_comes_is(store):
    async with store.watch() as changes:
        await store.append("s1", [entry("a")])
        await told(changes, "s1")
        await quiet(changes)
        await store.append("s2", [], head=HeadChange(state='{"cut":1}'))
        await told(changes, "s2")
        await quiet(changes)
        await store.create_session(record(3))
        await told(changes, "s3")
        await quiet(changes)
        await store.fork_session(record(4), "s1", up_to=1)
        await told(changes, "s4")


async def test_changes_between_two_items_come_together(store):
    """A server may tell them one by one, so they are given ever more time to arrive."""
    items: list[frozenset[str]] = []
    with trio.fail_after(60):
        async with store.watch() as changes:
            while items[-1:] != [{"s1", "s2"}]:
                await store.append("s1", [entry(f"a{len(items)}")])
                await store.append("s1", [entry(f"b{len(items)}")])
                await store.append("s2", [entry(f"c{len(items)}")])
                await trio.sleep(len(items) * 0.1)
                items.append(await anext(changes))
                await quiet(changes)


async def test_one_who_waits_is_woken(store):
    async with store.watch() as changes, trio.open_nursery() as nursery:
        nursery.start_soon(told, changes, "s2")
        await trio.testing.wait_all_tasks_blocked()
        await store.append("s2", [entry("a")])


async def test_all_who_watch_are_told(store):
    async with store.watch() as one, store.watch() as other:
        await store.append("s1", [entry("a")])
        await told(one, "s1")
        await told(other, "s1")


async def test_a_cancelled_wait_loses_nothing(store):
    async with store.watch() as changes:
        found: set[str] = set()
        for number in range(20):
            await store.append(f"s{number % 2 + 1}", [entry(f"k{number}")])
            with trio.CancelScope() as scope:
                if number % 3:
                    scope.cancel()
                found |= await anext(changes)
            if number % 3 == 0:
                assert f"s{number % 2 + 1}" in found
                found.clear()
        await store.append("s1", [entry("last")])
        with trio.fail_after(30):
            while "s1" not in found:
                found |= await anext(changes)


async def test_a_burst_by_many_tasks_is_seen_to_its_end(store):
    seen: dict[str, int] = {"s1": 0, "s2": 0}

    async def write(session_id: str, name: int) -> None:
        for step in range(10):
            await store.append(session_id, [entry(f"{name}:{step}")])

    with trio.fail_after(60):
        async with store.watch() as changes, trio.open_nursery() as nursery:
            for number in range(6):
                nursery.start_soon(write, f"s{number % 2 + 1}", number)
            while set(seen.values()) != {30}:
                for session_id in await anext(changes):
                    seen[session_id] += len(await store.entries(session_id, after=seen[session_id]))


async def test_an_error_in_the_block_comes_out_as_it_is(store):
    async def watch_and_fail() -> None:
        async with store.watch() as changes:
            await store.append("s1", [entry("a")])
            await told(changes, "s1")
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await watch_and_fail()
    await store.append("s1", [entry("b")])


async def test_it_ends_with_the_store(store):
    async with store.watch() as changes, trio.open_nursery() as nursery:

        async def until_the_end() -> None:
            async for _ in changes:
                pass

        nursery.start_soon(until_the_end)
        await trio.testing.wait_all_tasks_blocked()
        with trio.fail_after(30):
            await store.aclose()
    with pytest.raises(StoreError, match="closed"):
        async with store.watch():
            pass


async def test_a_session_s_own_store_watches_all_of_them(store):
    leased = LeasedStore(store, "s1", new_holder())
    async with leased.watch() as changes:
        await leased.append("s1", [entry("a")])
        await store.append("s2", [entry("a")])
        await told(changes, "s1", "s2")


WRITER = """
    import sys, trio
    from pathlib import Path
    from tests.contracts.test_store_contract import STORES, entry, record

    async def main():
        store = STORES[sys.argv[1]](Path(sys.argv[2]))
        print("open", flush=True)
        for line in sys.stdin:
            name, count = line.split()
            if await store.session(name) is None:
                await store.create_session(record(int(name[1:])))
            for number in range(int(count)):
                await store.append(name, [entry(f"{name}:{number}")])
            print("done", flush=True)
        await store.aclose()

    trio.run(main)
"""


@pytest.mark.parametrize("name", SHARED)
async def test_changes_by_another_process_are_seen(name, tmp_path: Path):
    store: Store = STORES[name](tmp_path)
    await store.create_session(record(1))
    with python(WRITER, name, tmp_path) as other:

        async def say(line: str) -> None:
            assert other.stdin is not None
            other.stdin.write(line + "\n")
            other.stdin.flush()
            with trio.fail_after(30):
                assert await trio.to_thread.run_sync(line_of, other) == "done"

        assert line_of(other) == "open"
        async with store.watch() as changes:
            await say("s1 1")
            await told(changes, "s1")
            await say("s5 0")
            await told(changes, "s5")
            await quiet(changes)
            seen = 0
            async with trio.open_nursery() as nursery:
                nursery.start_soon(say, "s6 60")
                with trio.fail_after(60):
                    while seen < 60:
                        if "s6" in await anext(changes):
                            seen += len(await store.entries("s6", after=seen))
    await store.aclose()
