"""Copies share the entries of their source: whole on every path, whoever is deleted. Knows the port only."""

from contextlib import closing
from itertools import permutations
from pathlib import Path
from sqlite3 import connect

import pytest
import trio

from runtime.values.stored import Checkpoint, Holder, Store, StoredEntry
from tests.contracts.test_store_contract import ALL, DURABLE, STORES, entry, ids, marked, record

FAMILY = {
    "s1": ["0", "1", "2", "3", "4", "e"],
    "s2": ["0", "1", "2", "3", "a", "b"],
    "s3": ["0", "1", "2", "3", "a", "c"],
    "s4": ["0", "1", "2", "d"],
}
"""Payloads. s2 is a copy of four entries of s1, s3 of five of s2, s4 of three of s2; each went on."""


async def family(store: Store) -> None:
    """Those sessions."""
    await store.create_session(record(1))
    await store.append("s1", numbered("0", "1", "2", "3", "4"))
    await store.fork_session(record(2), "s1", up_to=4)
    await store.append("s2", numbered("a", "b"))
    await store.fork_session(record(3), "s2", up_to=5)
    await store.append("s3", numbered("c"))
    await store.fork_session(record(4), "s2", up_to=3)
    await store.append("s4", numbered("d"))
    await store.append("s1", numbered("e"))


def numbered(*names: str) -> list[StoredEntry]:
    """Entries whose keys end with their payloads."""
    return [StoredEntry("t1", f"k{name}", "prompt", name.encode()) for name in names]


async def payloads(store: Store, session_id: str, *, limit: int = 2) -> list[str]:
    """Payloads of all entries, page by page; their numbers have no hole."""
    found: list[StoredEntry] = []
    while page := await store.entries(session_id, after=len(found), limit=limit):
        assert len(page) <= limit
        found += page
    assert [one.seq for one in found] == list(range(1, len(found) + 1))
    return [one.payload.decode() for one in found]


async def whole(store: Store, names: set[str]) -> bool:
    """Whether these sessions have all that is theirs, by place, by key and by search."""
    for name in names:
        content = FAMILY[name]
        assert await payloads(store, name) == content
        for seq, payload in enumerate(content, 1):
            assert await store.position(name, f"k{payload}") == seq
        for other in {one for content in FAMILY.values() for one in content} - set(content):
            assert await store.position(name, f"k{other}") is None
    return True


@pytest.fixture(params=ALL)
async def store(request, tmp_path):
    """Each store in turn, with the family."""
    made = STORES[request.param](tmp_path)
    await family(made)
    yield made
    await made.aclose()


@pytest.fixture(params=marked(name for name in STORES if name != "resilient-in-trouble"))
async def sound(request, tmp_path):
    """The same for those that are in no trouble."""
    made = STORES[request.param](tmp_path)
    await family(made)
    yield made
    await made.aclose()


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
async def test_copies_of_copies_are_whole(store, limit):
    assert {name: await payloads(store, name, limit=limit) for name in FAMILY} == FAMILY
    assert await whole(store, set(FAMILY))


@pytest.mark.parametrize("order", ["s1 s2 s3 s4", "s2 s1 s4 s3", "s3 s4 s2 s1", "s4 s2 s3 s1"])
async def test_who_is_deleted_takes_nothing_from_the_others(store, order):
    left = set(FAMILY)
    for name in order.split():
        assert await store.delete_session(name)
        left.remove(name)
        assert await whole(store, left)
        assert await store.entries(name) == []
        assert await store.position(name, "k0") is None
        assert set(await ids(store, limit=10)) == left
    await store.create_session(record(9))
    assert await payloads(store, "s9") == []


async def test_every_order_of_deletion_leaves_nothing_behind(tmp_path):
    for number, order in enumerate(permutations(FAMILY)):
        folder = tmp_path / str(number)
        folder.mkdir()
        store = STORES["sqlite"](folder)
        await family(store)
        await store.checkpoints.keep("s1", [mark(2), mark(5)])
        await store.checkpoints.keep("s2", [mark(4)])
        for place, name in enumerate(order, 1):
            await store.delete_session(name)
            assert await whole(store, set(order[place:]))
        await store.aclose()
        assert contents(folder / "s.db") == {"entries": 0, "shared": 0, "checkpoints": 0, "sessions": 0}


def contents(path: Path) -> dict[str, int]:
    """Rows of the tables of a store that is closed."""
    with closing(connect(path)) as connection:
        tables = ("entries", "shared", "checkpoints", "sessions")
        return {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables}


async def test_what_only_deleted_sessions_had_is_gone(tmp_path):
    store = STORES["sqlite"](tmp_path)
    await store.create_session(record(1))
    secrets = [f"secret-{number}" for number in range(5)]
    await store.append("s1", numbered(*secrets))
    await store.fork_session(record(2), "s1", up_to=3)
    await store.fork_session(record(3), "s1", up_to=2)
    await store.delete_session("s1")
    assert await payloads(store, "s2") == secrets[:3]
    await store.delete_session("s2")
    assert await payloads(store, "s3") == secrets[:2]
    await store.aclose()
    raw = (tmp_path / "s.db").read_bytes()
    assert [secret.encode() in raw for secret in secrets] == [True, True, False, False, False]


async def test_a_key_that_is_shared_is_there_already(store):
    await store.append("s3", [entry("k0", b"other"), entry("ka", b"other"), entry("kb", b"mine")])
    assert await payloads(store, "s3") == [*FAMILY["s3"], "mine"]
    await store.append("s4", [entry("k2", b"other"), entry("k3", b"mine")])
    assert await payloads(store, "s4") == [*FAMILY["s4"], "mine"]


async def test_a_lease_knows_the_last_shared_entry(store):
    await store.fork_session(record(5), "s3", up_to=2**32 - 1)
    lease = await store.leases.take("s5", Holder("me"))
    assert lease.last_seq == 6 or not lease.fence
    await store.append("s5", numbered("f"), lease=lease)
    assert await payloads(store, "s5") == [*FAMILY["s3"], "f"]


async def test_a_search_finds_what_is_shared(store):
    say = StoredEntry("t2", "turn:t2:prompt", "prompt", b'{"kind":"prompt","text":"needle here"}')
    await store.append("s3", [say])
    await store.fork_session(record(5), "s3", up_to=2**32 - 1)
    await store.append("s5", [say._replace(key="turn:t3:prompt", turn_id="t3")])
    assert [hit.seq for hit in await store.search("s5", "needle", limit=5)] == [8, 7]
    assert [hit.seq for hit in await store.search("s3", "needle", limit=5)] == [7]
    await store.delete_session("s3")
    assert [hit.seq for hit in await store.search("s5", "needle", limit=5)] == [8, 7]


@pytest.mark.parametrize("name", DURABLE)
async def test_sharing_is_durable(name, tmp_path):
    store = STORES[name](tmp_path)
    await family(store)
    await store.delete_session("s2")
    await store.aclose()
    again = STORES[name](tmp_path)
    assert await whole(again, set(FAMILY) - {"s2"})
    await again.aclose()


async def test_copies_and_deletions_at_once_leave_each_whole(store):
    async def go(number: int) -> None:
        await store.fork_session(record(number), f"s{number % 4 + 1}", up_to=4)
        await store.append(f"s{number}", numbered("mine"))
        if number % 3:
            assert await store.delete_session(f"s{number}")

    async def go_away(name: str) -> None:
        assert await store.delete_session(name)

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for number in range(10, 26):
                nursery.start_soon(go, number)
        async with trio.open_nursery() as nursery:
            for name in FAMILY:
                nursery.start_soon(go_away, name)
    for number in range(12, 26, 3):
        assert await payloads(store, f"s{number}") == [*FAMILY[f"s{number % 4 + 1}"][:4], "mine"]


def mark(seq: int, after: int = 0, value: bytes = b"v") -> Checkpoint:
    """A checkpoint of entries up to that seq."""
    return Checkpoint(seq, after, f"k{seq}", value)


async def test_checkpoints_come_newest_first_each_where_the_next_begins(sound):
    for checkpoint in (mark(2), mark(4, 2), mark(5, 4), mark(6, 2)):
        await sound.checkpoints.keep("s1", [checkpoint])
    assert await sound.checkpoints.latest("s1") == [mark(6, 2), mark(2)]
    assert await sound.checkpoints.latest("s1", up_to=5) == [mark(5, 4), mark(4, 2), mark(2)]
    assert await sound.checkpoints.latest("s1", up_to=5, limit=1) == [mark(5, 4)]
    assert await sound.checkpoints.latest("s1", up_to=3) == [mark(2)]
    assert await sound.checkpoints.latest("s1", up_to=1) == []
    assert await sound.checkpoints.latest("nobody") == []
    await sound.checkpoints.keep("nobody", [mark(1)])


async def test_a_later_checkpoint_takes_the_place_of_one_that_ends_alike(sound):
    await sound.checkpoints.keep("s1", [mark(2), mark(4, 2)])
    await sound.checkpoints.keep("s1", [mark(4, 0, bytes(range(256)))])
    assert await sound.checkpoints.latest("s1") == [mark(4, 0, bytes(range(256)))]


async def test_a_copy_has_the_checkpoints_of_what_it_shares(sound):
    await sound.checkpoints.keep("s1", [mark(2), mark(5, 2)])
    await sound.checkpoints.keep("s2", [mark(4, 2), mark(6, 4)])
    await sound.fork_session(record(5), "s2", up_to=5)
    await sound.fork_session(record(6), "s1", up_to=5)
    assert await sound.checkpoints.latest("s6") == [mark(5, 2), mark(2)]
    await sound.delete_session("s1")
    await sound.checkpoints.keep("s5", [mark(5, 4)])
    assert (await sound.checkpoints.latest("s5"))[0] == mark(5, 4)
    assert await sound.checkpoints.latest("s6") == [mark(5, 2), mark(2)]


async def test_a_deleted_session_s_checkpoints_are_gone(sound):
    await sound.create_session(record(9))
    await sound.append("s9", numbered("0", "1"))
    await sound.checkpoints.keep("s9", [mark(2)])
    await sound.delete_session("s9")
    await sound.create_session(record(9))
    await sound.append("s9", numbered("0", "1"))
    assert await sound.checkpoints.latest("s9") == []


async def test_a_store_in_trouble_has_no_checkpoints_and_says_nothing(tmp_path):
    store = STORES["resilient-in-trouble"](tmp_path)
    await family(store)
    await store.checkpoints.keep("s1", [mark(2)])
    assert await store.checkpoints.latest("s1") == []
    await store.aclose()
