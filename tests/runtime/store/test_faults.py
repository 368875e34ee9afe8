"""Every statement that writes failing once, and a disk that is full at any byte: told, and nothing is lost.

SQLite's own file access cannot be reached from here, so a failure is put where its report arrives: at the
statement, before it has done anything, or after (a sync that failed although the bytes were written).
"""

import random
import sqlite3
import threading
from pathlib import Path

import pytest
import trio

from runtime.conversation.lease import new_holder
from runtime.store.resilient.store import ResilientStore
from runtime.store.sqlite import connection
from runtime.store.sqlite.store import SqliteStore
from runtime.values.errors import StoreError
from runtime.values.stored import HeadChange, SessionRecord
from tests.contracts.test_store_search import say, step
from tests.runtime.store.helpers import entry, fill, keys, python, record
from tests.runtime.store.test_damage import integrity

KEYS = [f"k{number}" for number in range(8)]
FAILURES = {
    "i/o": sqlite3.SQLITE_IOERR,
    "fsync": sqlite3.SQLITE_IOERR_FSYNC,
    "full": sqlite3.SQLITE_FULL,
    "busy": sqlite3.SQLITE_BUSY,
    "read-only": sqlite3.SQLITE_READONLY,
    "corrupt": sqlite3.SQLITE_CORRUPT,
}


class Faults:
    """Which statement fails and how. `count` goes on over all connections of a store that writes."""

    def __init__(self) -> None:
        self.count = 0
        self.at = 0
        self.code = 0
        self.afterwards = False

    def before(self) -> None:
        """A statement is about to be carried out."""
        if threading.current_thread().name != "wholeturn-store":
            return  # a read that fails is the caller's to repeat
        self.count += 1
        if self.count == self.at and not self.afterwards:
            self._fail()

    def after(self) -> None:
        """It has been."""
        if threading.current_thread().name == "wholeturn-store" and self.count == self.at and self.afterwards:
            self._fail()

    def _fail(self) -> None:
        error = sqlite3.OperationalError("a fault")
        error.sqlite_errorcode = self.code
        raise error


@pytest.fixture
def faults(monkeypatch):
    """Put into every connection that is opened from now on."""
    given = Faults()

    class Failing(connection.Connection):
        def execute(self, sql, parameters=()):
            given.before()
            done = super().execute(sql, parameters)
            try:
                given.after()
            except sqlite3.Error:
                done.close()  # else it keeps the file locked for as long as the error is known
                raise
            return done

    monkeypatch.setattr(connection, "Connection", Failing)
    return given


async def work(path: Path, told: list[str]) -> None:
    """A session's life: made, taken, written to, copied, given back. Nothing in it may fail."""
    store = ResilientStore(SqliteStore(path, on_repair=told.append, patience=0.05), on_trouble=told.append)
    await store.create_session(record())
    lease = await store.leases.take("s1", new_holder())
    for number in range(0, 8, 2):
        lines = [entry(KEYS[number], b"x" * 3000), entry(KEYS[number + 1])]
        await store.append("s1", lines, head=HeadChange(title=KEYS[number + 1]), lease=lease)
    await store.fork_session(record("s2"), "s1", up_to=3)
    assert await keys(store) == KEYS
    assert await keys(store, "s2") == KEYS[:3]
    await release(store, lease)
    await store.append("s1", [], head=HeadChange(state='{"end":1}'))
    await store.aclose()


async def release(store: ResilientStore, lease) -> None:
    """Give it back, as a session does that ends: whatever comes of it."""
    try:
        await store.leases.release(lease)
    except StoreError:
        return


async def check(path: Path, told: list[str], where: str) -> None:
    """Everything is there, once and in order, or the person knows what is not."""
    assert integrity(path) == "ok", where
    store = SqliteStore(path)
    lost = [line for line in told if "lost are changes of" in line]
    assert lost == [], (where, told)
    assert await keys(store) == KEYS, (where, told)
    assert await keys(store, "s2") == KEYS[:3], (where, told)
    head = await store.session("s1")
    assert head is not None
    assert (head.title, head.state) == ("k7", '{"end":1}'), where
    await store.aclose()


async def statements(path: Path, faults: Faults) -> int:
    """How many there are when nothing fails."""
    told: list[str] = []
    await work(path, told)
    await check(path, told, "no fault")
    assert told == []
    return faults.count


@pytest.mark.parametrize("afterwards", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("failure", FAILURES)
async def test_any_statement_may_fail_once(tmp_path, faults, failure, afterwards):
    count = await statements(tmp_path / "first.db", faults)
    assert count > 60
    faults.code, faults.afterwards = FAILURES[failure], afterwards
    # All places with the failures of a disk, some with the others.
    for at in range(1, count + 1, 1 if failure == "fsync" else 4):
        faults.count, faults.at = 0, at
        told: list[str] = []
        path = tmp_path / f"{at}.db"
        with trio.fail_after(60):
            await work(path, told)
            faults.at = 0
            await check(path, told, f"{failure} at {at}: {told}")


FULL_AT_ANY_BYTE = """
    import resource, sys, trio
    from pathlib import Path
    from runtime.store.resilient.store import ResilientStore
    from runtime.store.sqlite.store import SqliteStore
    from tests.runtime.store.helpers import entry, keys, record

    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]

    async def one(folder, limit):
        told = []
        path = Path(folder) / f"{limit}.db"
        store = ResilientStore(SqliteStore(path, on_repair=told.append), on_trouble=told.append)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        await store.create_session(record())
        for number in range(12):
            await store.append("s1", [entry(f"k{number}", b"x" * 5000), entry(f"e{number}")])
        full = len(await keys(store))
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        await store.append("s1", [entry("last")])
        await store.aclose()
        again = SqliteStore(path)
        found = await keys(again)
        await again.aclose()
        expected = [key for number in range(12) for key in (f"k{number}", f"e{number}")] + ["last"]
        print(limit, full == 24, found == expected, len(told), told[-1:], flush=True)

    async def main():
        for limit in range(0, 150_000, 3_000):
            await one(sys.argv[1], limit)

    trio.run(main)
"""


async def test_a_disk_may_be_full_at_any_byte(tmp_path):
    resource = pytest.importorskip("resource")
    assert resource.RLIM_INFINITY is not None
    with python(FULL_AT_ANY_BYTE, tmp_path) as other:
        out, _ = other.communicate(timeout=240)
    lines = out.splitlines()
    assert len(lines) == 50
    for line in lines:
        _limit, kept, found, count, *last = line.split(maxsplit=4)
        assert (kept, found) == ("True", "True"), line
        assert count == "0" or "everything kept in memory is stored" in " ".join(last), line
    assert sum(" 0 " in line for line in lines) < 30, "the disk was hardly ever full"


@pytest.mark.parametrize("seed", range(30))
async def test_any_damage_leaves_a_store_that_works(tmp_path, seed):
    path, chance = tmp_path / "s.db", random.Random(seed)
    store = SqliteStore(path)
    await fill(store, sessions=4, entries=40)
    await say(store, "apple", "pear", session_id="s1")
    await store.search("s1", "pear", limit=3)
    await store.aclose()
    content = bytearray(path.read_bytes())
    for _ in range(chance.randrange(1, 4)):
        start = chance.randrange(len(content))
        content[start : start + chance.choice((1, 40, 4096, 9000))] = chance.randbytes(
            chance.choice((1, 40, 4096))
        )
    path.write_bytes(bytes(content[: chance.choice((len(content), chance.randrange(len(content))))]))
    told: list[str] = []
    again = ResilientStore(SqliteStore(path, on_repair=told.append), on_trouble=told.append)
    with trio.fail_after(60):
        await use(again)
    await again.aclose()
    assert not [line for line in told if "lost are changes" in line], told
    kept = SqliteStore(path)
    assert await keys(kept, "new") == ["a", "b"]
    await kept.aclose()


async def use(store: ResilientStore) -> None:
    """Read what there is and go on."""
    await store.create_session(SessionRecord("new", "/w", "2030", "2030"))
    await store.append("new", [entry("a")])
    for number in range(4):
        await keys(store, f"s{number}")
    await store.search("s1", "apple", limit=3)
    await store.append("new", [step("reply", "b", text="apple")])
    page = await store.list_sessions(cwd=None, cursor=None, limit=100)
    assert "new" in [head.session_id for head in page.sessions]
    assert [hit.key for hit in await store.search("new", "apple", limit=3)] == ["b"]
