"""A store on a database server: what a login shows, without a password, and what is wrong with it."""

import sys
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest

from acp_server.assembly.extras import MODULES, installing, is_installed
from acp_server.doctor import store as checks
from runtime.store.postgres.schema import SCHEMA_VERSION
from runtime.store.postgres.store import PostgresStore
from runtime.values.stored import SessionRecord
from tests.acp_server.doctor.rigs import Machine, only
from tests.support import postgres

GOOD = checks.Seen("UTF8", only_reads=False, schema="public", may_create=True, user="me", table="")
RESULTS = [
    (GOOD, 0, "ok", "lets us in; its tables will be made"),
    (GOOD, 2, "ok", "schema 2"),
    (GOOD, 1, "ok", "schema 1 will be brought up to 2"),
    (GOOD, 3, "bad", "written by a newer version (schema 3, this one knows 2)"),
    (GOOD._replace(encoding="LATIN1"), 0, "bad", "encoding LATIN1"),
    (GOOD._replace(only_reads=True), 2, "bad", "standby"),
    (GOOD._replace(may_create=False), 0, "bad", "me may not make tables in schema public"),
    (GOOD._replace(may_create=False), 2, "ok", "schema 2"),
    (GOOD._replace(may_create=False, schema=""), 0, "bad", "a schema on its search path"),
]


@pytest.mark.parametrize(("seen", "version", "status", "text"), RESULTS)
def test_what_is_seen_there(seen: checks.Seen, version: int, status: str, text: str) -> None:
    found = checks.judged(seen, version, 2, "the server")
    assert found.status == status
    assert text in found.text
    assert bool(found.mend) is (status == "bad")


class Driver:
    """A driver of a server that tells everybody who asked, and lets nobody in."""

    def connect(self, address: str, connect_timeout: int) -> None:
        assert 0 < connect_timeout <= 10
        raise RuntimeError(f'connection failed: "{address}"\n  password authentication failed')


@pytest.mark.parametrize("password", ["wrong-word", "wrong%40other"])
def test_a_server_that_refuses_says_why_and_no_password(
    password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", cast("ModuleType", Driver()))
    found = checks.check_server(f"postgresql://me:{password}@h/db")
    assert found.status == "bad"
    assert "password authentication failed" in found.text
    assert "wrong" not in str(found)


def test_a_server_without_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", cast("ModuleType", None))
    mend = checks.check_server("postgresql://h/db").mend
    assert mend == f"Install it: {sys.executable} -m pip install 'wholeturn[postgres]'"


@pytest.mark.parametrize("extra", MODULES)
def test_an_extra_is_there_with_all_of_its_modules(extra: str) -> None:
    for lacking in (None, *MODULES[extra]):
        present: set[str] = set(MODULES[extra]) - {str(lacking)}
        find = {name: object() for name in present}.get
        assert is_installed(extra, find) is (lacking is None)


def test_an_environment_without_pip_is_uvs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/my tools/python")
    shown = installing("gateway", lambda name: None)
    assert shown == "uv pip install --python '/my tools/python' 'wholeturn[gateway]'"


# ---------------------------------------------------------------- a real server


@pytest.fixture
def address(tmp_path: Path) -> str:
    return postgres.address_of(tmp_path)


def look(machine: Machine, address: str) -> str:
    """Status and text."""
    machine.env["WHOLETURN_STORE"] = address
    from acp_server.doctor.store import check_store

    found = only(check_store(machine.read()), "store")
    return f"{found.status}: {found.text}"


@pytest.mark.system
async def test_a_real_server_before_and_after_the_first_session(machine: Machine, address: str) -> None:
    assert look(machine, address).endswith("its tables will be made with the first session")
    # Looking has made none.
    assert look(machine, address).endswith("its tables will be made with the first session")
    store = PostgresStore(address)
    await store.create_session(SessionRecord("s", "/w", "2026-01-01", "2026-01-01", "t", "{}"))
    await store.aclose()
    assert look(machine, address).endswith(f"lets us in, schema {SCHEMA_VERSION}")
    postgres.ask(address, "UPDATE wholeturn_schema SET version = 99")
    assert look(machine, address).endswith(f"(schema 99, this one knows {SCHEMA_VERSION}).")
    reading = f"{address}%20-cdefault_transaction_read_only%3Don"
    postgres.ask(address, f"UPDATE wholeturn_schema SET version = {SCHEMA_VERSION}")
    assert "lets nobody write" in look(machine, reading)


@pytest.mark.system
def test_a_real_server_that_has_no_such_database_or_user(machine: Machine) -> None:
    server = postgres.shared()
    assert 'database "nowhere" does not exist' in look(machine, server.replace("/postgres?", "/nowhere?"))
    assert 'role "nobody" does not exist' in look(machine, server.replace("tester@", "nobody:secret-word@"))
    assert "secret-word" not in look(machine, server.replace("tester@", "nobody:secret-word@"))
