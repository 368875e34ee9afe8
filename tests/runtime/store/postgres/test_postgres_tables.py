"""PostgreSQL's tables: older ones become current with all that is in them; an older process does no harm."""

import psycopg
import pytest

from runtime.store.postgres.schema import MIGRATIONS, SCHEMA_VERSION
from runtime.store.postgres.store import PostgresStore
from tests.runtime.store.helpers import entry, keys, record
from tests.support.postgres import address_of

pytestmark = pytest.mark.system

OLDER_REMOVAL = "DELETE FROM wholeturn_entries WHERE session = 1"


@pytest.fixture
def connection(tmp_path):
    """A connection to a database of the test's own."""
    with psycopg.connect(address_of(tmp_path), autocommit=True) as made:
        yield made


@pytest.fixture
async def store(tmp_path):
    """A store there."""
    made = PostgresStore(address_of(tmp_path))
    yield made
    await made.aclose()


async def test_tables_of_version_1_are_brought_up_to_date_with_all_that_is_in_them(connection, store):
    for statement in MIGRATIONS[0]:
        connection.execute(statement)
    connection.execute("UPDATE wholeturn_schema SET version = 1")
    connection.execute(
        "INSERT INTO wholeturn_sessions (session_id, cwd, created_at, updated_at, title, state, last_seq)"
        " VALUES ('s1', '/w', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z', 'T', '{}', 2)"
    )
    connection.execute(
        "INSERT INTO wholeturn_entries"
        " SELECT 1, n, 't1', 'k' || n, 'reply', 'x' FROM generate_series(1, 2) AS n"
    )
    assert await store.session("s1") == record("s1")._replace(title="T")
    await store.append("s1", [entry("k2"), entry("k3")])
    await store.fork_session(record("copy"), "s1", up_to=2)
    await store.append("copy", [entry("k1"), entry("mine")])
    assert [await keys(store, name) for name in ("s1", "copy")] == [["k1", "k2", "k3"], ["k1", "k2", "mine"]]
    assert connection.execute("SELECT version FROM wholeturn_schema").fetchone() == (SCHEMA_VERSION,)


async def test_a_process_of_an_older_version_cannot_delete_what_others_share(connection, store):
    await store.create_session(record("s1"))
    await store.append("s1", [entry("k1"), entry("k2")])
    await store.fork_session(record("copy"), "s1", up_to=1)
    with pytest.raises(psycopg.errors.RaiseException, match="share"):
        connection.execute(OLDER_REMOVAL)
    assert [await keys(store, name) for name in ("s1", "copy")] == [["k1", "k2"], ["k1"]]
    assert await store.delete_session("s1")
    assert await keys(store, "copy") == ["k1"]
    await store.delete_session("copy")
    assert connection.execute("SELECT count(*) FROM wholeturn_entries").fetchone() == (0,)
    assert connection.execute("SELECT count(*) FROM wholeturn_shared").fetchone() == (0,)
