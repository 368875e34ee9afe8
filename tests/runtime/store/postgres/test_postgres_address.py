"""The address of a database server: how it is taken, and that its password shows nowhere. Needs no server."""

import subprocess
import sys

import pytest

from runtime.store.common.faults import StoreTrouble, TroubleKind, is_address, masked, scrubbed
from runtime.store.opening import open_store
from runtime.store.postgres.store import PostgresStore
from runtime.store.resilient.store import ResilientStore
from runtime.values.errors import ConfigError
from tests.runtime.store.helpers import ROOT, record

SECRET = "geheim9"
NOBODY = "127.0.0.1:1"


def ignore(_message: str) -> None:
    """Nobody listens."""


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (f"postgresql://u:{SECRET}@h/db", "postgresql://u:***@h/db"),
        (
            f"postgres://u:{SECRET}@h:5432,i:5433/db?sslmode=require",
            "postgres://u:***@h:5432,i:5433/db?sslmode=require",
        ),
        (f"postgresql://u:a@{SECRET}/x@h/db", "postgresql://u:***@h/db"),
        (f"postgresql://u:{SECRET}%40@h/db", "postgresql://u:***@h/db"),
        (
            f"postgresql://h/db?user=u&password={SECRET}&sslmode=require",
            "postgresql://h/db?user=u&password=***&sslmode=require",
        ),
        (f"postgresql://h/db?sslpassword={SECRET}", "postgresql://h/db?sslpassword=***"),
        ("postgresql://u@h/db", "postgresql://u@h/db"),
        ("postgresql:///db?host=/tmp/x", "postgresql:///db?host=/tmp/x"),
        ("/home/me/sessions.db", "/home/me/sessions.db"),
    ],
)
def test_an_address_is_shown_without_its_password(address, shown):
    assert masked(address) == shown
    if SECRET in address:
        assert SECRET not in scrubbed(f'could not find host "{SECRET}", tried {address}', address)


@pytest.mark.parametrize(
    ("store", "expected"),
    [("postgresql://h", True), ("postgres://h", True), ("mysql://h", False), ("/a/postgresql://", False)],
)
def test_what_is_taken_for_a_server(store, expected):
    assert is_address(store) is expected


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://u:{SECRET}@{NOBODY}/db",
        f"postgresql://u@{NOBODY}/db?password={SECRET}",
        f"postgresql://u:x@{SECRET}@{NOBODY}/db",
    ],
)
async def test_no_trouble_shows_a_password(address):
    store = PostgresStore(address)
    for _ in range(2):
        with pytest.raises(StoreTrouble) as caught:
            await store.create_session(record())
        assert caught.value.kind is TroubleKind.UNREACHABLE
        assert SECRET not in str(caught.value)
        assert SECRET not in str(caught.value.data)
    await store.aclose()


async def test_what_the_person_is_told_shows_no_password():
    told: list[str] = []
    store = open_store(f"postgresql://u:{SECRET}@{NOBODY}/db", on_trouble=told.append)
    assert isinstance(store, ResilientStore)
    await store.create_session(record())
    await store.aclose()
    assert len(told) == 2
    assert f"postgresql://u:***@{NOBODY}/db" in told[0]
    assert SECRET not in "".join(told)


@pytest.mark.parametrize(
    "address", [f"postgresql://u:{SECRET}@h:port/db?nonsense=1", f"postgresql://[::1:{SECRET}"]
)
def test_an_address_that_cannot_be_read_is_refused_at_once(address):
    with pytest.raises(ConfigError) as caught:
        open_store(address, on_trouble=ignore)
    assert f"u:{SECRET}" not in str(caught.value)


def test_without_the_driver_it_is_told_what_to_install():
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from runtime.values.errors import ConfigError; from runtime.store.opening import open_store\n"
        f"try: open_store('postgresql://u:{SECRET}@h/db', on_trouble=print)\n"
        "except ConfigError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert "pip install 'wholeturn[postgres]'" in done.stdout, done.stderr
    assert SECRET not in done.stdout


def test_no_other_store_loads_the_driver():
    code = (
        "import sys; from runtime.store.opening import open_store\n"
        "open_store('memory', on_trouble=print); open_store('/nowhere/s.db', on_trouble=print)\n"
        "print([name for name in sys.modules if 'psycopg' in name or 'postgres' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
