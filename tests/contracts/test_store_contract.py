"""What every store must do, whatever it is made of. Knows the port only."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pytest
import trio
from _pytest.mark import ParameterSet
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.store.common.faults import StoreTrouble, TroubleKind
from runtime.store.memory import MemoryStore
from runtime.store.opening import open_store
from runtime.store.postgres.store import PostgresStore
from runtime.store.resilient.store import ResilientStore
from runtime.store.sqlite.store import SqliteStore
from runtime.values.errors import InvalidParams, StoreError
from runtime.values.stored import UNCHANGED, HeadChange, SessionRecord, Store, StoredEntry
from tests.locks import locked
from tests.support.postgres import address_of

MakeStore = Callable[[Path], Store]


def fail(message: str) -> None:
    """No healthy store has trouble to report."""
    pytest.fail(f"unexpected trouble: {message}")


class RefusingStore(MemoryStore):
    """A store that takes no change, for the one that must cope with it."""

    async def create_session(self, record):
        """Refuse."""
        await trio.lowlevel.checkpoint()
        raise StoreTrouble(TroubleKind.FULL, Path("/full.db"))

    async def append(self, session_id, entries, *, head=UNCHANGED, lease=None):
        """Refuse."""
        await trio.lowlevel.checkpoint()
        raise StoreTrouble(TroubleKind.FULL, Path("/full.db"))


STORES: dict[str, MakeStore] = {
    "memory": lambda _folder: MemoryStore(),
    "memory-by-name": lambda _folder: open_store("memory", on_trouble=fail),
    "sqlite": lambda folder: locked(partial(SqliteStore, on_repair=fail), folder / "s.db"),
    "resilient-sqlite": lambda folder: locked(partial(open_store, on_trouble=fail), folder / "s.db"),
    "resilient-in-trouble": lambda _folder: ResilientStore(RefusingStore(), on_trouble=lambda _told: None),
    "eager-sqlite": lambda folder: locked(
        lambda path: open_store(str(path), on_trouble=fail, eager=True), folder / "s.db"
    ),
    "postgres": lambda folder: PostgresStore(address_of(folder)),
    "resilient-postgres": lambda folder: open_store(address_of(folder), on_trouble=fail),
}


def marked(names: Iterable[str]) -> list[ParameterSet]:
    """Those stores as parameters of tests; what needs a server is marked so."""
    marks = {True: [pytest.mark.system], False: []}
    return [pytest.param(name, marks=marks["postgres" in name]) for name in names]


ALL = marked(STORES)
DURABLE = marked(name for name in STORES if "sqlite" in name or "postgres" in name)
SHARED = marked(("sqlite", "resilient-sqlite", "postgres", "resilient-postgres"))
"""Those that several processes may use."""


@pytest.fixture(params=ALL)
async def store(request, tmp_path):
    """Each store in turn, empty."""
    made = STORES[request.param](tmp_path)
    yield made
    await made.aclose()


def record(number: int, *, cwd: str = "/w", changed: int | None = None) -> SessionRecord:
    """Session `number`, changed at second `changed`."""
    second = number if changed is None else changed
    created = f"2026-01-01T00:00:{number:02}Z"
    return SessionRecord(f"s{number}", cwd, created, f"2026-01-01T00:00:{second:02}Z")


def entry(key: str, payload: bytes = b"{}") -> StoredEntry:
    """An entry with that key."""
    return StoredEntry("t1", key, "reply", payload)


async def keys(store: Store, session_id: str = "s1") -> list[str]:
    """The keys of a session in order."""
    return [found.key for found in await store.entries(session_id)]


async def ids(store: Store, *, cwd: str | None = None, limit: int = 2) -> list[str]:
    """All session ids, page by page."""
    found: list[str] = []
    cursor = None
    while True:
        page = await store.list_sessions(cwd=cwd, cursor=cursor, limit=limit)
        assert len(page.sessions) <= limit
        found += [session.session_id for session in page.sessions]
        if page.next_cursor is None:
            return found
        assert page.sessions, "a cursor behind an empty page never ends"
        cursor = page.next_cursor


async def test_a_created_session_is_there_as_given(store):
    given_record = record(1)._replace(title="Ein Täst ✓", state='{"cut":3}')
    await store.create_session(given_record)
    assert await store.session("s1") == given_record
    assert await store.entries("s1") == []


@pytest.mark.parametrize("session_id", ["unknown", "", "../../etc/passwd", "x\0y", "a" * 5000, "%", "s_"])
async def test_an_unknown_session_is_none_and_empty(store, session_id):
    await store.create_session(record(1))
    assert await store.session(session_id) is None
    assert await store.entries(session_id) == []
    assert await store.position(session_id, "k") is None


async def test_an_id_can_be_taken_once(store):
    await store.create_session(record(1))
    with pytest.raises(StoreError, match="exists already"):
        await store.create_session(record(1, cwd="/other"))
    assert (await store.session("s1")).cwd == "/w"


async def test_nothing_can_be_written_to_a_session_that_is_not_there(store):
    with pytest.raises(StoreError, match="not in the store"):
        await store.append("s1", [entry("k")])
    with pytest.raises(StoreError, match="not in the store"):
        await store.append("s1", [], head=HeadChange(updated_at="2026-01-01T00:00:00Z"))
    await store.create_session(record(1))
    assert await store.entries("s1") == []


async def test_update_changes_only_what_is_given(store):
    await store.create_session(record(1))
    await store.append("s1", [], head=HeadChange(updated_at="2027", title="T"))
    await store.append("s1", [], head=HeadChange(updated_at="2028", state='{"a":1}'))
    await store.append("s1", [], head=HeadChange(updated_at="2029"))
    assert await store.session("s1") == record(1)._replace(updated_at="2029", title="T", state='{"a":1}')


async def test_entries_are_numbered_from_one_and_come_back_whole(store):
    await store.create_session(record(1))
    payloads = [b"", bytes(range(256)), b"x" * 1_000_000]
    for number, payload in enumerate(payloads):
        await store.append("s1", [StoredEntry(f"t{number}", f"k{number}", "kind ✓", payload, seq=99)])
    assert await store.entries("s1") == [
        StoredEntry(f"t{number}", f"k{number}", "kind ✓", payload, seq=number + 1)
        for number, payload in enumerate(payloads)
    ]


async def test_each_session_has_its_own_numbers_and_keys(store):
    await store.create_session(record(1))
    await store.create_session(record(2))
    await store.append("s1", [entry("k"), entry("l")])
    await store.append("s2", [entry("k")])
    assert [found.seq for found in await store.entries("s1")] == [1, 2]
    assert [found.seq for found in await store.entries("s2")] == [1]


async def test_a_key_that_is_there_is_left_as_it_is(store):
    await store.create_session(record(1))
    await store.append("s1", [entry("a", b"first"), entry("b")])
    await store.append("s1", [entry("a", b"second"), entry("c"), entry("c", b"again")])
    found = await store.entries("s1")
    assert [(row.seq, row.key) for row in found] == [(1, "a"), (2, "b"), (3, "c")]
    assert found[0].payload == b"first"


async def test_the_state_changes_with_the_entries(store):
    await store.create_session(record(1))
    await store.append("s1", [entry("a")], head=HeadChange(state='{"cut":1}'))
    await store.append("s1", [entry("b")])
    await store.append("s1", [], head=HeadChange(state='{"cut":2}'))
    assert (await store.session("s1")).state == '{"cut":2}'
    assert (await store.session("s1")).updated_at == record(1).updated_at
    assert await keys(store) == ["a", "b"]


async def test_entries_come_in_pages(store):
    await store.create_session(record(1))
    await store.append("s1", [entry(f"k{number}") for number in range(7)])
    pages = [await store.entries("s1", after=after, limit=3) for after in (0, 3, 6, 7, 1000)]
    assert [[found.seq for found in page] for page in pages] == [[1, 2, 3], [4, 5, 6], [7], [], []]
    assert await store.entries("s1", limit=0) == []


async def test_position_finds_an_entry_by_key(store):
    await store.create_session(record(1))
    await store.append("s1", [entry("a"), entry("b")])
    assert [await store.position("s1", key) for key in ("a", "b", "c")] == [1, 2, None]


async def test_sessions_are_listed_newest_change_first(store):
    for number, changed in ((1, 5), (2, 9), (3, 1), (4, 5)):
        await store.create_session(record(number, changed=changed))
    assert await ids(store) == ["s2", "s4", "s1", "s3"]
    await store.append("s3", [], head=HeadChange(updated_at="2026-01-01T00:00:30Z"))
    assert await ids(store) == ["s3", "s2", "s4", "s1"]


async def test_the_cwd_filters_exactly(store):
    for number, cwd in enumerate(("/w", "/w/", "/w/sub", "/W", "/w", "/w")):
        await store.create_session(record(number, cwd=cwd))
    assert await ids(store, cwd="/w") == ["s5", "s4", "s0"]
    assert await ids(store, cwd="/nowhere") == []


async def test_an_exact_page_has_no_successor(store):
    for number in range(4):
        await store.create_session(record(number))
    page = await store.list_sessions(cwd=None, cursor=None, limit=4)
    assert len(page.sessions) == 4
    assert page.next_cursor is None


async def test_a_cursor_holds_its_place_while_sessions_come_and_move(store):
    for number in range(6):
        await store.create_session(record(number))
    first = await store.list_sessions(cwd=None, cursor=None, limit=2)
    assert [session.session_id for session in first.sessions] == ["s5", "s4"]
    await store.create_session(record(7, changed=50))
    await store.append("s5", [], head=HeadChange(updated_at="2026-01-01T00:00:51Z"))
    second = await store.list_sessions(cwd=None, cursor=first.next_cursor, limit=2)
    assert [session.session_id for session in second.sessions] == ["s3", "s2"]
    third = await store.list_sessions(cwd=None, cursor=second.next_cursor, limit=2)
    assert [session.session_id for session in third.sessions] == ["s1", "s0"]
    assert third.next_cursor is None


@pytest.mark.parametrize(
    "cursor", ["", "s1-", "1", "eyJ9", "s1-zz", "s1-6162", "s1-1f", "s1-ff1f61", "é" * 9]
)
async def test_a_foreign_cursor_is_refused(store, cursor):
    with pytest.raises(InvalidParams, match="cursor"):
        await store.list_sessions(cwd=None, cursor=cursor, limit=2)


async def test_many_tasks_append_and_nothing_is_lost(store):
    for number in range(5):
        await store.create_session(record(number))

    async def client(session_id: str, name: int) -> None:
        for step in range(10):
            await store.append(session_id, [entry(f"{name}:{step}")])

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for number in range(5):
                for name in range(4):
                    nursery.start_soon(client, f"s{number}", name)
    for number in range(5):
        found = await store.entries(f"s{number}")
        assert [row.seq for row in found] == list(range(1, 41))
        for name in range(4):
            mine = [row.key for row in found if row.key.startswith(f"{name}:")]
            assert mine == [f"{name}:{step}" for step in range(10)]


async def test_a_failing_change_fails_nobody_else(store):
    await store.create_session(record(1))
    outcomes: dict[str, str] = {}

    async def attempt(name: str, session_id: str) -> None:
        try:
            await store.append(session_id, [entry(name)])
            outcomes[name] = "stored"
        except StoreError:
            outcomes[name] = "refused"

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(attempt, f"k{number}", "nobody" if number % 3 == 0 else "s1")
    good = {f"k{number}" for number in range(20) if number % 3}
    assert {name for name, outcome in outcomes.items() if outcome == "stored"} == good
    assert set(await keys(store)) == good


async def test_a_call_cancelled_before_it_began_changes_nothing(store):
    await store.create_session(record(1))
    with trio.CancelScope() as scope:
        scope.cancel()
        await store.append("s1", [entry("k")])
    assert scope.cancelled_caught
    assert await keys(store) == []


async def test_a_cancelled_append_happens_whole_or_not_at_all(store):
    await store.create_session(record(1))
    for number in range(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.append, "s1", [entry(f"{number}:{part}") for part in range(3)])
            if number % 2:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
    found = await keys(store)
    assert len(found) % 3 == 0
    for place in range(0, len(found), 3):
        name = found[place].split(":")[0]
        assert found[place : place + 3] == [f"{name}:{part}" for part in range(3)]
    await store.append("s1", [entry("after")])
    assert (await keys(store))[-1] == "after"


async def test_a_closed_store_says_so_and_closes_twice(store):
    await store.create_session(record(1))
    await store.aclose()
    await store.aclose()
    with pytest.raises(StoreError, match="closed"):
        await store.append("s1", [entry("k")])
    with pytest.raises(StoreError, match="closed"):
        await store.session("s1")


@pytest.mark.parametrize("name", DURABLE)
async def test_what_was_acknowledged_is_there_after_opening_again(name, tmp_path):
    store = STORES[name](tmp_path)
    await store.create_session(record(1)._replace(title="T"))
    await store.append("s1", [entry("a"), entry("b", b"\0\xff")], head=HeadChange(state='{"n":1}'))
    await store.aclose()
    again = STORES[name](tmp_path)
    assert await again.session("s1") == record(1)._replace(title="T", state='{"n":1}')
    assert [(row.seq, row.payload) for row in await again.entries("s1")] == [(1, b"{}"), (2, b"\0\xff")]
    await again.append("s1", [entry("c")])
    assert await keys(again) == ["a", "b", "c"]
    await again.aclose()


CALLS = st.one_of(
    st.tuples(st.just("create"), st.integers(0, 3), st.integers(0, 9)),
    st.tuples(st.just("append"), st.integers(0, 3), st.integers(0, 9)),
    st.tuples(st.just("update"), st.integers(0, 3), st.integers(0, 9)),
)


async def perform(store: Store, call: tuple[str, int, int]) -> str:
    """One call; its outcome as a word."""
    kind, number, value = call
    try:
        match kind:
            case "create":
                await store.create_session(record(number, changed=value))
            case "append":
                head = HeadChange(state=str(value))
                await store.append(f"s{number}", [entry(f"k{value}"), entry("k0")], head=head)
            case _:
                head = HeadChange(updated_at=f"2026-01-01T00:00:{value:02}Z")
                await store.append(f"s{number}", [], head=head)
    except StoreError as error:
        return str(error)
    return "done"


async def everything(store: Store) -> list[object]:
    """All that a store can tell."""
    transcripts = [await store.entries(f"s{number}") for number in range(4)]
    return [await ids(store), [await store.session(f"s{number}") for number in range(4)], transcripts]


@pytest.mark.parametrize("name", marked(("sqlite", "resilient-sqlite", "resilient-in-trouble", "postgres")))
@settings(max_examples=25)
@given(calls=st.lists(CALLS, max_size=12))
def test_all_stores_behave_as_one(name, calls, tmp_path_factory):
    async def play(name: str) -> tuple[list[str], list[object]]:
        store = STORES[name](tmp_path_factory.mktemp("play"))
        outcomes = [await perform(store, call) for call in calls]
        seen = await everything(store)
        await store.aclose()
        return outcomes, seen

    expected = trio.run(play, "memory")
    assert trio.run(play, name) == expected
