"""Copying and removing sessions: what every store must do. Knows the port only."""

import pytest
import trio

from runtime.values.errors import InvalidParams, ResourceNotFound, StoreError
from runtime.values.stored import HeadChange
from tests.contracts.test_store_contract import ALL, DURABLE, STORES, entry, ids, keys, record
from tests.contracts.test_store_search import say


@pytest.fixture(params=ALL)
async def store(request, tmp_path):
    """Each store in turn, with a session of five entries."""
    made = STORES[request.param](tmp_path)
    await made.create_session(record(1))
    await made.append("s1", [entry(f"k{number}", b"%d" % number) for number in range(5)])
    yield made
    await made.aclose()


async def test_a_fork_has_the_first_entries_and_goes_its_own_way(store):
    head = record(2)._replace(title="fork", state='{"cut":1}')
    await store.fork_session(head, "s1", up_to=3)
    assert await store.session("s2") == head
    assert await store.entries("s2") == (await store.entries("s1"))[:3]
    await store.append("s2", [entry("k2"), entry("mine")])
    await store.append("s1", [entry("theirs")])
    assert await keys(store, "s2") == ["k0", "k1", "k2", "mine"]
    assert await keys(store) == ["k0", "k1", "k2", "k3", "k4", "theirs"]
    assert await store.position("s2", "mine") == 4
    assert await store.session("s1") == record(1)


@pytest.mark.parametrize(("up_to", "count"), [(0, 0), (-1, 0), (5, 5), (2**32 - 1, 5), (2**40, 5)])
async def test_a_fork_takes_no_more_than_there_is(store, up_to, count):
    await store.fork_session(record(2), "s1", up_to=up_to)
    assert len(await store.entries("s2")) == count


async def test_a_fork_needs_a_source_and_a_free_id(store):
    with pytest.raises(ResourceNotFound, match="no session 'nobody'"):
        await store.fork_session(record(2), "nobody", up_to=3)
    with pytest.raises(InvalidParams, match="exists already"):
        await store.fork_session(record(1), "s1", up_to=3)
    assert await ids(store) == ["s1"]
    assert len(await keys(store)) == 5


async def test_a_deleted_session_is_gone_and_its_id_is_free(store):
    await store.create_session(record(2))
    await store.append("s2", [entry("other")])
    await store.search("s1", "anything", limit=1)
    assert await store.delete_session("s1") is True
    assert await store.delete_session("s1") is False
    assert await store.session("s1") is None
    assert await store.entries("s1") == []
    assert await store.position("s1", "k1") is None
    assert await ids(store) == ["s2"]
    with pytest.raises(StoreError, match="not in the store"):
        await store.append("s1", [entry("late")])
    assert await keys(store, "s2") == ["other"]
    await store.create_session(record(1))
    assert await keys(store) == []


async def test_what_was_deleted_is_found_no_more(store):
    await say(store, "apple", "apple")
    assert len(await store.search("s1", "apple", limit=5)) == 2
    await store.delete_session("s1")
    assert await store.search("s1", "apple", limit=5) == []
    await store.create_session(record(1))
    await say(store, "pear")
    assert await store.search("s1", "apple", limit=5) == []
    assert len(await store.search("s1", "pear", limit=5)) == 1


async def test_a_purge_takes_what_was_not_changed_for_long(store):
    for number in range(2, 60):
        await store.create_session(record(number))
    await store.append("s7", [], head=HeadChange(updated_at="2026-02-01T00:00:00Z"))
    assert await store.purge("2026-01-01T00:00:50Z") == 48
    assert set(await ids(store, limit=50)) == {"s7", *(f"s{number}" for number in range(50, 60))}
    assert await store.purge("2026-01-01T00:00:50Z") == 0
    assert await store.purge("1990") == 0


async def test_forks_deletions_and_writes_at_once_do_not_disturb_each_other(store):
    async def go(number: int) -> None:
        await store.fork_session(record(number), "s1", up_to=5)
        await store.append(f"s{number}", [entry("mine")])
        if number % 2:
            assert await store.delete_session(f"s{number}")

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for number in range(2, 12):
                nursery.start_soon(go, number)
    for number in range(2, 12, 2):
        assert await keys(store, f"s{number}") == ["k0", "k1", "k2", "k3", "k4", "mine"]
    assert len(await ids(store)) == 6


@pytest.mark.parametrize("name", DURABLE)
async def test_copies_and_deletions_are_durable(name, tmp_path):
    store = STORES[name](tmp_path)
    for number in (1, 2):
        await store.create_session(record(number))
        await store.append(f"s{number}", [entry("a"), entry("b")])
    await store.fork_session(record(3), "s1", up_to=1)
    await store.delete_session("s2")
    await store.aclose()
    again = STORES[name](tmp_path)
    assert await ids(again) == ["s3", "s1"]
    assert [await keys(again, name) for name in ("s1", "s2", "s3")] == [["a", "b"], [], ["a"]]
    await again.aclose()
