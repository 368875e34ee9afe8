"""kill -9 in the middle of appends: every acknowledged entry is there. KILL_ROUNDS sets how often."""

import os
import random
import sqlite3
from contextlib import closing

import trio

from runtime.store.sqlite.store import SqliteStore
from tests.runtime.store.helpers import keys, line_of, python, record

ROUNDS = int(os.environ.get("KILL_ROUNDS", "10"))

WRITER = """
    import sys, trio
    from pathlib import Path
    from runtime.store.opening import open_store
    from tests.runtime.store.helpers import entry

    async def main():
        store = open_store(Path(sys.argv[1]), on_trouble=print)

        async def client(name):
            number = 0
            while True:
                key = f"{sys.argv[2]}:{name}:{number}"
                await store.append("s1", [entry(key, b"x" * 700), entry(key + "+", b"y" * 90)])
                print(key, flush=True)
                number += 1

        async with trio.open_nursery() as nursery:
            for name in range(3):
                nursery.start_soon(client, name)

    trio.run(main)
"""


async def test_no_acknowledged_entry_is_lost(tmp_path):
    path = tmp_path / "s.db"
    store = SqliteStore(path)
    await store.create_session(record())
    await store.aclose()
    chance = random.Random(7)
    acknowledged: set[str] = set()
    for number in range(ROUNDS):
        with python(WRITER, path, number) as writer:
            for _ in range(chance.randrange(1, 120)):
                acknowledged.add(line_of(writer))
            writer.kill()
            assert writer.stdout is not None
            rest = writer.stdout.read().splitlines()
            acknowledged.update(rest[:-1])
        store = SqliteStore(path)
        with trio.fail_after(30):
            found = await keys(store)
            await store.aclose()
        assert len(found) == len(set(found))
        assert acknowledged <= set(found)
        assert {key + "+" for key in found if not key.endswith("+")} == {k for k in found if k.endswith("+")}
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
