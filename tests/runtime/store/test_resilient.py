"""A store in trouble: work goes on in memory, is seen by every read, and is stored when that is possible."""

from pathlib import Path

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.store.common.faults import StoreTrouble, TroubleKind
from runtime.store.memory import MemoryStore
from runtime.store.opening import open_store
from runtime.store.resilient.store import ResilientStore
from runtime.store.sqlite.store import SqliteStore
from runtime.values.errors import StoreError
from runtime.values.stored import UNCHANGED, HeadChange
from tests.runtime.store.helpers import LOCK_HOLDER, entry, keys, line_of, python, record, release


class Patient(MemoryStore):
    """A memory store that can be in trouble, for writes alone or for reads too."""

    def __init__(self) -> None:
        super().__init__()
        self.trouble: TroubleKind | None = None
        self.reads_too = False
        self.refuse_after: int | None = None

    async def create_session(self, record):
        self._write()
        await super().create_session(record)

    async def append(self, session_id, entries, *, head=UNCHANGED, lease=None):
        self._write()
        await super().append(session_id, entries, head=head, lease=lease)

    async def session(self, session_id):
        self._read()
        return await super().session(session_id)

    async def entries(self, session_id, *, after=0, limit=500):
        self._read()
        return await super().entries(session_id, after=after, limit=limit)

    async def list_sessions(self, **given):
        self._read()
        return await super().list_sessions(**given)

    def _write(self) -> None:
        if self.refuse_after is not None:
            self.refuse_after -= 1
            self.trouble = TroubleKind.FULL if self.refuse_after < 0 else None
        if self.trouble is not None:
            raise StoreTrouble(self.trouble, Path("/x.db"))

    def _read(self) -> None:
        if self.trouble is not None and self.reads_too:
            raise StoreTrouble(self.trouble, Path("/x.db"))


@pytest.fixture
def told():
    """What the person was told."""
    return []


@pytest.fixture
def inner():
    """The store that can be in trouble."""
    return Patient()


@pytest.fixture
def store(inner, told):
    """The store under test."""
    return ResilientStore(inner, on_trouble=told.append)


async def test_each_trouble_is_told_once_and_so_is_its_end(store, inner, told):
    await store.create_session(record())
    inner.trouble = TroubleKind.FULL
    for number in range(5):
        await store.append("s1", [entry(f"full{number}")])
    inner.trouble = TroubleKind.LOCKED
    for number in range(5):
        await store.append("s1", [entry(f"locked{number}")])
    assert len(told) == 2
    assert "disk is full" in told[0]
    assert "kept in memory" in told[0]
    assert "locked" in told[1]
    inner.trouble = None
    await store.append("s1", [entry("last")])
    assert len(told) == 3
    assert "can be written again" in told[2]
    inner.trouble = TroubleKind.FULL
    await store.append("s1", [entry("again")])
    assert len(told) == 4


async def test_reads_merge_what_is_stored_and_what_is_not(store, inner):
    await store.create_session(record())
    await store.append("s1", [entry("a"), entry("b")], head=HeadChange(state="1"))
    inner.trouble = TroubleKind.FULL
    await store.append("s1", [entry("c"), entry("b", b"other")], head=HeadChange(state="2"))
    await store.append("s1", [entry("d"), entry("c", b"other")])
    await store.append("s1", [], head=HeadChange(updated_at="2030", title="T"))
    assert await store.session("s1") == record()._replace(updated_at="2030", title="T", state="2")
    merged = await store.entries("s1")
    assert [(line.seq, line.key, line.payload) for line in merged] == [
        (number + 1, key, b"{}") for number, key in enumerate("abcd")
    ]
    assert [line.key for line in await store.entries("s1", after=1, limit=2)] == ["b", "c"]
    assert [line.key for line in await store.entries("s1", after=3)] == ["d"]
    assert [await store.position("s1", key) for key in "abcde"] == [1, 2, 3, 4, None]
    assert await keys(inner) == ["a", "b"]
    inner.trouble = None
    await store.append("s1", [])
    assert await inner.entries("s1") == merged
    assert await inner.session("s1") == await store.session("s1")


async def test_a_session_that_was_never_stored_works_whole(store, inner):
    inner.trouble, inner.reads_too = TroubleKind.UNREACHABLE, True
    await store.create_session(record())
    await store.append("s1", [entry("a")], head=HeadChange(state="1"))
    assert (await store.session("s1")).state == "1"
    assert await keys(store) == ["a"]
    page = await store.list_sessions(cwd="/w", cursor=None, limit=5)
    assert [head.session_id for head in page.sessions] == ["s1"]
    with pytest.raises(StoreError, match="exists already"):
        await store.create_session(record())


async def test_stored_sessions_that_cannot_be_read_are_an_error_not_empty(store, inner):
    await store.create_session(record())
    inner.trouble, inner.reads_too = TroubleKind.UNREACHABLE, True
    with pytest.raises(StoreTrouble):
        await store.entries("s1")
    await store.append("s1", [entry("a")])
    with pytest.raises(StoreTrouble):
        await store.entries("s1")
    inner.trouble = None
    assert await keys(store) == ["a"]


async def test_wrong_requests_stay_errors_in_bad_days(store, inner, told):
    await store.create_session(record())
    inner.trouble = TroubleKind.FULL
    with pytest.raises(StoreError, match="exists already"):
        await store.create_session(record())
    with pytest.raises(StoreError, match="not in the store"):
        await store.append("nobody", [entry("k")])
    with pytest.raises(StoreError, match="not in the store"):
        await store.append("nobody", [], head=HeadChange(updated_at="2030"))
    assert await store.session("nobody") is None


async def test_a_change_that_is_refused_later_blocks_nothing(store, inner, told):
    inner.trouble, inner.reads_too = TroubleKind.LOCKED, True
    await store.append("s1", [entry("lost")])
    await store.create_session(record("s2"))
    inner.trouble = None
    await store.append("s2", [entry("k")])
    assert await keys(store, "s2") == ["k"]
    assert any("could not be stored" in message for message in told)


async def test_one_session_s_success_carries_the_others_along(store, inner, told):
    for number in range(3):
        await store.create_session(record(f"s{number}"))
    inner.trouble = TroubleKind.FULL
    for number in range(3):
        await store.append(f"s{number}", [entry("k")])
    inner.trouble = None
    await store.append("s0", [entry("l")])
    assert [await keys(inner, f"s{number}") for number in range(3)] == [["k", "l"], ["k"], ["k"]]
    assert "can be written again" in told[-1]


async def test_catching_up_half_way_keeps_the_order(store, inner):
    await store.create_session(record())
    inner.trouble = TroubleKind.FULL
    for key in "abcd":
        await store.append("s1", [entry(key)])
    inner.trouble, inner.refuse_after = None, 2
    await store.append("s1", [entry("e")])
    assert await keys(inner) == ["a", "b"]
    assert await keys(store) == list("abcde")
    inner.refuse_after = None
    inner.trouble = None
    await store.append("s1", [entry("f")])
    assert await keys(inner) == list("abcdef")


async def test_unsaved_sessions_are_listed_in_their_place(store, inner):
    for number in range(6):
        await store.create_session(record(f"s{number}", second=number * 2))
    inner.trouble = TroubleKind.FULL
    await store.create_session(record("new", second=5))
    await store.append("s0", [], head=HeadChange(updated_at="2026-01-01T00:00:07Z"))
    seen: list[str] = []
    cursor = None
    while True:
        page = await store.list_sessions(cwd="/w", cursor=cursor, limit=2)
        seen += [head.session_id for head in page.sessions]
        if page.next_cursor is None:
            break
        cursor = page.next_cursor
    assert seen == ["s5", "s4", "s0", "s3", "new", "s2", "s1"]


async def test_closing_stores_the_rest_or_names_what_is_lost(inner, told):
    for trouble, last in ((None, "can be written again"), (TroubleKind.FULL, "lost are changes of: s1")):
        store = ResilientStore(inner := Patient(), on_trouble=told.append)
        await store.create_session(record())
        inner.trouble = TroubleKind.FULL
        await store.append("s1", [entry("k")])
        inner.trouble = trouble
        await store.aclose()
        assert last in told[-1]


async def test_a_caller_cancelled_while_catching_up_stores_nothing_twice(store, inner):
    await store.create_session(record())
    inner.trouble = TroubleKind.FULL
    for key in "abc":
        await store.append("s1", [entry(key)])
    inner.trouble = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.append, "s1", [entry("d")])
        await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    await store.append("s1", [entry("e")])
    found = await keys(inner)
    assert [key for key in found if key != "d"] == ["a", "b", "c", "e"]


STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "update", "create", "break", "mend"]), st.integers(0, 2)),
    max_size=20,
)


@settings(max_examples=60)
@given(steps=STEPS)
def test_trouble_changes_nothing_that_can_be_seen(steps):
    async def play() -> None:
        healthy, inner = MemoryStore(), Patient()
        store = ResilientStore(inner, on_trouble=lambda _message: None)
        for number, (step, which) in enumerate(steps):
            name = f"s{which}"
            outcomes = []
            for target in (healthy, store):
                try:
                    match step:
                        case "append":
                            head = HeadChange(state=str(number))
                            await target.append(name, [entry(f"k{number % 7}")], head=head)
                        case "update":
                            head = HeadChange(updated_at=f"2026-{number:02}", title=str(number))
                            await target.append(name, [], head=head)
                        case "create":
                            await target.create_session(record(name, second=number))
                        case _:
                            inner.trouble = TroubleKind.FULL if step == "break" else None
                    outcomes.append("done")
                except StoreError as error:
                    outcomes.append(str(error))
            assert outcomes[0] == outcomes[1]
            assert await seen(store) == await seen(healthy)
        inner.trouble = None
        await store.aclose()
        inner._closed = False
        assert await seen(inner) == await seen(healthy)

    async def seen(target) -> list[object]:
        names = [f"s{number}" for number in range(3)]
        page = await target.list_sessions(cwd=None, cursor=None, limit=9)
        return [
            page,
            [await target.session(name) for name in names],
            [await target.entries(name) for name in names],
        ]

    trio.run(play)


async def test_a_full_disk_under_sqlite_loses_nothing(tmp_path, told):
    inner = SqliteStore(tmp_path / "s.db")
    store = ResilientStore(inner, on_trouble=told.append)
    await store.create_session(record())
    await store.append("s1", [entry("before")])
    await inner._writer.run(lambda connection: connection.execute("PRAGMA max_page_count = 1").close())
    for number in range(30):
        await store.append("s1", [entry(f"k{number}", b"x" * 5000)])
    expected = ["before", *(f"k{number}" for number in range(30))]
    assert await keys(store) == expected
    assert len(told) == 1
    assert len(await keys(inner)) < 31
    await inner._writer.run(lambda connection: connection.execute("PRAGMA max_page_count = 100000").close())
    await store.append("s1", [entry("after")])
    assert await keys(inner) == [*expected, "after"]
    assert "can be written again" in told[-1]
    await store.aclose()


async def test_a_locked_file_stalls_the_first_call_only(tmp_path, told):
    path = tmp_path / "s.db"
    store = ResilientStore(SqliteStore(path, patience=0.5), on_trouble=told.append)
    await store.create_session(record())
    with python(LOCK_HOLDER, path) as other:
        assert line_of(other) == "locked"
        await store.append("s1", [entry("first")])
        started = trio.current_time()
        for number in range(3):
            await store.append("s1", [entry(f"k{number}")])
        assert trio.current_time() - started < 3
        assert await keys(store) == ["first", "k0", "k1", "k2"]
        assert len(told) == 1
        release(other)
    await store.append("s1", [entry("last")])
    await store.aclose()
    again = open_store(path, on_trouble=told.append)
    assert await keys(again) == ["first", "k0", "k1", "k2", "last"]
    await again.aclose()


async def test_an_unusable_place_is_told_once_and_all_works_in_memory(tmp_path, told):
    (tmp_path / "file").write_text("in the way")
    store = open_store(tmp_path / "file" / "s.db", on_trouble=told.append)
    assert told == []
    await store.create_session(record())
    await store.append("s1", [entry("k")])
    assert await keys(store) == ["k"]
    assert len(told) == 1
    (tmp_path / "file").unlink()
    await store.append("s1", [entry("l")])
    assert "can be written again" in told[-1]
    await store.aclose()
    again = open_store(tmp_path / "file" / "s.db", on_trouble=told.append)
    assert await keys(again) == ["k", "l"]
    await again.aclose()


async def test_a_repair_is_told_to_the_one_who_hears_of_trouble(tmp_path, told):
    (tmp_path / "s.db").write_bytes(b"garbage\0")
    store = open_store(tmp_path / "s.db", on_trouble=told.append)
    await store.create_session(record())
    assert len(told) == 1
    assert "was damaged" in told[0]
    await store.aclose()
