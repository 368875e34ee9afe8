"""A PostgreSQL server that dies, cuts, blocks or refuses: told by kind, and nothing is lost or doubled."""

import random

import pytest
import trio

from runtime.conversation.lease import new_holder
from runtime.store.common.faults import StoreTrouble, TroubleKind
from runtime.store.postgres import leases
from runtime.store.postgres.schema import SCHEMA_VERSION
from runtime.store.postgres.statements import held_now
from runtime.store.postgres.store import PostgresStore
from runtime.store.resilient.store import ResilientStore
from runtime.values.errors import LeaseLost, SessionBusy, StoreError
from runtime.values.stored import HeadChange
from tests.runtime.store.helpers import entry, keys, record
from tests.support.postgres import Server, address_of, ask

pytestmark = pytest.mark.system

CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE application_name = 'wholeturn' AND pid <> pg_backend_pid()"
)


@pytest.fixture(scope="module")
def server():
    """A server of our own, to be killed."""
    made = Server()
    made.start()
    yield made
    made.remove()


@pytest.fixture
def address(tmp_path):
    """A store in the server that all tests share."""
    return address_of(tmp_path)


@pytest.fixture
async def store(address):
    """A store with one session."""
    made = PostgresStore(address)
    await made.create_session(record())
    yield made
    await made.aclose()


async def trouble(store: PostgresStore, kind: TroubleKind, key: str = "no") -> StoreTrouble:
    """The trouble that an append meets."""
    with pytest.raises(StoreTrouble) as caught:
        await store.append("s1", [entry(key)])
    assert caught.value.kind is kind, str(caught.value)
    return caught.value


async def test_what_a_killed_server_acknowledged_is_there_when_it_is_back(server):
    moments = random.Random(3)
    store = PostgresStore(server.address())
    acknowledged: list[str] = []
    kinds: set[TroubleKind] = set()
    wanted, enough = 0, trio.Event()
    try:
        await store.create_session(record())

        async def write(name: int) -> None:
            for number in range(10_000):
                key = f"{name}:{number}"
                try:
                    await store.append("s1", [entry(key), entry(f"{key}+")])
                except StoreTrouble as error:
                    kinds.add(error.kind)
                    return
                acknowledged.append(key)
                if len(acknowledged) >= wanted:
                    enough.set()

        for _ in range(3):
            wanted, enough = len(acknowledged) + moments.randrange(5, 30), trio.Event()
            with trio.fail_after(60):
                async with trio.open_nursery() as nursery:
                    for name in range(len(acknowledged), len(acknowledged) + 3):
                        nursery.start_soon(write, name)
                    await enough.wait()
                    await trio.to_thread.run_sync(lambda: server.stop(kill=True))
                await trio.to_thread.run_sync(server.start)
                await until_back(store)
            found = await keys(store)
            assert len(found) == len(set(found))
            assert set(acknowledged) <= set(found)
            assert {f"{key}+" for key in found if key[-1] != "+"} == {key for key in found if key[-1] == "+"}
        assert kinds == {TroubleKind.UNREACHABLE}
    finally:
        await store.aclose()


async def until_back(store: PostgresStore) -> None:
    """The server is tried again a second after it could not be reached."""
    while True:
        try:
            await store.session("s1")
        except StoreTrouble:
            await trio.sleep(0.1)
        else:
            return


async def test_work_goes_on_in_memory_while_the_server_is_away(server):
    told: list[str] = []
    store = ResilientStore(PostgresStore(server.address()), on_trouble=told.append)
    await store.create_session(record("s9"))
    holder = new_holder()
    lease = await store.leases.take("s9", holder)
    await store.append("s9", [entry("a")], lease=lease)
    await trio.to_thread.run_sync(server.stop)
    with trio.fail_after(10):
        for key in "bcd":
            await store.append("s9", [entry(key)], lease=lease)
    assert len(told) == 1
    assert "kept in memory" in told[0]
    await trio.to_thread.run_sync(server.start)
    with trio.fail_after(30):
        while len(told) < 2:
            await trio.sleep(0.3)
            await store.append("s9", [entry("e")], lease=lease)
    assert "can be written again" in told[1]
    await store.aclose()
    again = PostgresStore(server.address())
    assert await keys(again, "s9") == ["a", "b", "c", "d", "e"]
    await again.aclose()


async def test_cut_connections_are_replaced_and_nothing_is_written_twice(store, address):
    async def write(name: int) -> None:
        for number in range(25):
            await store.append("s1", [entry(f"{name}:{number}")], head=HeadChange(title=str(number)))

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for name in range(3):
                nursery.start_soon(write, name)
            for place in (5, 20, 40, 60):
                while len(await store.entries("s1", after=place, limit=1)) == 0:
                    pass
                await trio.to_thread.run_sync(ask, address, CUT)
    found = await store.entries("s1")
    assert [line.seq for line in found] == list(range(1, 76))
    assert len({line.key for line in found}) == 75


async def test_who_watches_a_cut_connection_misses_nothing(store, address):
    other = PostgresStore(address)
    await other.create_session(record("s2"))
    seen = 0
    with trio.fail_after(60):
        async with store.watch() as changes:
            for number in range(6):
                await trio.to_thread.run_sync(ask, address, CUT)
                await other.append("s2", [entry(f"k{number}")])
                while seen <= number:
                    if "s2" in await anext(changes):
                        seen += len(await store.entries("s2", after=seen))
    await other.aclose()


async def test_a_locked_session_is_waited_for_and_then_told(address):
    store = PostgresStore(address, statement_seconds=0.3)
    await store.create_session(record())
    import psycopg

    with psycopg.connect(address) as blocker:
        blocker.execute("SELECT 1 FROM wholeturn_sessions FOR UPDATE")
        told = await trouble(store, TroubleKind.LOCKED)
        assert "lock timeout" in str(told)
        with trio.fail_after(5):
            assert await keys(store) == []
    await store.append("s1", [entry("yes")])
    assert await keys(store) == ["yes"]
    await store.aclose()


async def test_a_statement_that_takes_too_long_is_given_up(address):
    store = PostgresStore(address, statement_seconds=0.2)
    await store.create_session(record())
    body = "$$BEGIN PERFORM pg_sleep(9); RETURN NEW; END$$"
    ask(address, f"CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS {body}")
    ask(address, "CREATE TRIGGER slow BEFORE INSERT ON wholeturn_entries EXECUTE FUNCTION slow()")
    assert "statement timeout" in str(await trouble(store, TroubleKind.FAILED))
    ask(address, "DROP TRIGGER slow ON wholeturn_entries")
    await store.append("s1", [entry("yes")])
    assert await keys(store) == ["yes"]
    await store.aclose()


async def test_a_cancelled_read_does_not_wait_for_the_server(store, address):
    import psycopg

    with psycopg.connect(address) as blocker:
        blocker.execute("LOCK TABLE wholeturn_entries IN ACCESS EXCLUSIVE MODE")
        with trio.fail_after(3), trio.move_on_after(0.2) as scope:
            await store.entries("s1")
        assert scope.cancelled_caught
    assert await store.entries("s1") == []


async def test_a_process_that_stands_still_does_not_keep_a_session_locked(address, monkeypatch):
    """In the middle of a transaction, which the server gives up; and what it does later comes too late."""
    store, other = PostgresStore(address, lease_seconds=0.9), PostgresStore(address)
    await store.create_session(record())
    old = await store.leases.take("s1", new_holder())
    still, goes_on = trio.Event(), trio.Event()
    read = held_now

    def stand_still(connection, session_id, clock):
        monkeypatch.undo()
        trio.from_thread.run_sync(still.set)
        trio.from_thread.run(goes_on.wait)
        return read(connection, session_id, clock)

    async def take() -> None:
        with pytest.raises(SessionBusy):
            await store.leases.take("s1", old.holder)

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            monkeypatch.setattr(leases, "held_now", stand_still)
            nursery.start_soon(take)
            await still.wait()
            store._heartbeat.drop(old)
            await trio.sleep(1)
            mine = await other.leases.take("s1", new_holder())
            goes_on.set()
    with pytest.raises(LeaseLost):
        await store.append("s1", [entry("late")], lease=old)
    await other.append("s1", [entry("mine")], lease=mine)
    assert await keys(other) == ["mine"]
    await store.aclose()
    await other.aclose()


FAILURES = {
    "53100": TroubleKind.FULL,
    "58030": TroubleKind.FAILED,
    "XX001": TroubleKind.CORRUPT,
    "42501": TroubleKind.READ_ONLY,
    "25006": TroubleKind.READ_ONLY,
    "53300": TroubleKind.UNREACHABLE,
    "57P03": TroubleKind.UNREACHABLE,
    "40P01": TroubleKind.LOCKED,
}


@pytest.mark.parametrize("code", FAILURES)
async def test_every_failure_has_a_kind_and_changes_nothing(store, address, code):
    ask(
        address,
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$BEGIN RAISE EXCEPTION 'a fault' USING ERRCODE = '{code}'; END$$",
    )
    ask(address, "CREATE TRIGGER fail AFTER INSERT ON wholeturn_entries EXECUTE FUNCTION fail()")
    assert "a fault" in str(await trouble(store, FAILURES[code]))
    assert await keys(store) == []
    ask(address, "DROP TRIGGER fail ON wholeturn_entries")
    with trio.fail_after(10):
        await until_back(store)
    await store.append("s1", [entry("yes")])
    assert [(line.seq, line.key) for line in await store.entries("s1")] == [(1, "yes")]


async def test_what_the_server_cannot_hold_is_refused(store):
    for bad in (entry("a\0b"), entry("\ud800"), entry("x" * 5000 + str(list(range(5000))))):
        with pytest.raises(StoreError) as caught:
            await store.append("s1", [bad])
        assert not isinstance(caught.value, StoreTrouble)
    await store.append("s1", [], head=HeadChange(title="a\0b"))
    head = await store.session("s1")
    assert head is not None
    assert head.title == "a\ufffdb"


async def test_tables_of_a_newer_version_are_left_alone(store, address):
    ask(address, f"UPDATE wholeturn_schema SET version = {SCHEMA_VERSION + 1}")
    newer = PostgresStore(address)
    assert "newer version" in str(await trouble(newer, TroubleKind.NEWER))
    await newer.aclose()


async def test_many_who_come_first_make_the_tables_once(address):
    stores = [PostgresStore(address) for _ in range(6)]
    async with trio.open_nursery() as nursery:
        for number, store in enumerate(stores):
            nursery.start_soon(store.create_session, record(f"s{number}"))
    page = await stores[0].list_sessions(cwd=None, cursor=None, limit=10)
    assert len(page.sessions) == 6
    for store in stores:
        await store.aclose()


async def test_a_database_that_cannot_hold_all_text_is_refused(server):
    server.ask("CREATE DATABASE narrow ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    store = PostgresStore(server.address("narrow"))
    with pytest.raises(StoreError, match="encoding UTF8, not LATIN1"):
        await store.session("s1")
    await store.aclose()


async def test_a_commit_is_durable_whatever_the_server_has_set(server):
    server.ask("ALTER ROLE tester SET synchronous_commit = off")
    store = PostgresStore(server.address())
    with pytest.raises(StoreError):
        await store.append("nobody", [])
    asked = await store._read(lambda found: found.execute("SHOW synchronous_commit").fetchone())
    assert asked == ("on",)
    await store.aclose()
