"""The tables in PostgreSQL and how older ones become current. Knows SQL, no thread and no session.

They lie in the first schema of the search path, so that one database can hold several stores. Text is
compared byte by byte (COLLATE "C"), as every other store does it.
"""

from typing import Any

import psycopg

from runtime.store.common.faults import StoreTrouble, TroubleKind
from runtime.values.errors import StoreError

Connection = psycopg.Connection[tuple[Any, ...]]

CHANNEL = "'wholeturn_' || md5(current_schema())"
"""SQL for the channel on which the ids of changed sessions are told: one for each store of a database."""

_MIGRATING = 0x574C5455
"""The advisory lock that one who changes tables holds."""

# One statement, and so one journey: a process that stands still never keeps a session locked by it. Gives
# whether there is the session, the lease that is in the way if there is one, and the time. passed: the fence
# of a lease whose holder is known to be gone. at_time: instead of the server's time.
_APPEND = """
    CREATE FUNCTION wholeturn_append(
        name text, turn_ids text[], keys text[], kinds text[], payloads bytea[],
        new_updated_at text, new_title text, new_state text,
        my_fence bigint, my_holder text, passed bigint, at_time float8,
        OUT is_there boolean, OUT held_fence bigint, OUT held_by text, OUT held_owner text,
        OUT held_until float8, OUT now_is float8
    ) LANGUAGE plpgsql AS $$
    DECLARE
        head record;
        held record;
    BEGIN
        now_is := coalesce(at_time, extract(epoch FROM clock_timestamp())::float8);
        SELECT {head} INTO head FROM wholeturn_sessions WHERE session_id = name FOR NO KEY UPDATE;
        is_there := FOUND;
        IF NOT is_there THEN
            RETURN;
        END IF;
        SELECT * INTO held FROM wholeturn_leases WHERE session = head.number;
        IF FOUND AND (CASE
            WHEN my_fence > 0 THEN held.fence <> my_fence
            WHEN my_fence = 0 THEN held.holder NOT IN ('', my_holder) AND held.expires_at > now_is
                AND held.fence IS DISTINCT FROM passed
            ELSE false
        END) THEN
            held_fence := held.fence;
            held_by := held.holder;
            held_owner := held.owner;
            held_until := held.expires_at;
            RETURN;
        END IF;
        WITH added AS (
            INSERT INTO wholeturn_entries (session, seq, turn_id, key, kind, payload)
            SELECT head.number, head.last_seq + row_number() OVER (ORDER BY given.place),
                given.turn_id, given.key, given.kind, given.payload
            FROM unnest(turn_ids, keys, kinds, payloads)
                WITH ORDINALITY AS given (turn_id, key, kind, payload, place)
            WHERE NOT EXISTS (
                SELECT 1 FROM wholeturn_entries AS there
                WHERE there.session = head.number AND there.key = given.key) {known}
            RETURNING 1
        )
        UPDATE wholeturn_sessions SET last_seq = last_seq + (SELECT count(*) FROM added),
            updated_at = coalesce(new_updated_at, updated_at), title = coalesce(new_title, title),
            state = coalesce(new_state, state), change = pg_current_xact_id()::text::bigint
        WHERE number = head.number;
        PERFORM pg_notify({channel}, name);
    END $$"""
"""head: what is read of a session. known: for keys that are there, although not in entries of its own."""

_FIRST_TABLES = (
    # last_seq: of the entries. change: the transaction of the last change, for who missed a notice of it.
    # Room is left in each page, so that a change of them touches no index.
    """CREATE TABLE wholeturn_sessions (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        session_id text COLLATE "C" NOT NULL UNIQUE,
        cwd text COLLATE "C" NOT NULL,
        created_at text NOT NULL,
        updated_at text COLLATE "C" NOT NULL,
        title text,
        state text NOT NULL,
        last_seq bigint NOT NULL DEFAULT 0,
        change bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint
    ) WITH (fillfactor = 70)""",
    "CREATE INDEX wholeturn_sessions_by_change ON wholeturn_sessions (updated_at, session_id)",
    "CREATE INDEX wholeturn_sessions_by_cwd ON wholeturn_sessions (cwd, updated_at, session_id)",
    """CREATE TABLE wholeturn_entries (
        session bigint NOT NULL,
        seq bigint NOT NULL,
        turn_id text NOT NULL,
        key text COLLATE "C" NOT NULL,
        kind text NOT NULL,
        payload bytea NOT NULL,
        PRIMARY KEY (session, seq),
        UNIQUE (session, key)
    )""",
    # Who may write a session. The fence only ever grows; a lease that is free keeps it.
    """CREATE TABLE wholeturn_leases (
        session bigint PRIMARY KEY,
        fence bigint NOT NULL,
        holder text NOT NULL,
        owner text NOT NULL,
        expires_at double precision NOT NULL
    ) WITH (fillfactor = 70)""",
    # The words of each entry of the sessions that were searched; NULL where they are too many for a vector.
    """CREATE TABLE wholeturn_recalls (
        session bigint NOT NULL,
        seq bigint NOT NULL,
        words tsvector,
        PRIMARY KEY (session, seq)
    )""",
    "CREATE TABLE wholeturn_recalled (session bigint PRIMARY KEY, seq bigint NOT NULL)",
    _APPEND.format(head="number, last_seq", known="", channel=CHANNEL),
    "CREATE TABLE wholeturn_schema (version integer NOT NULL)",
    "INSERT INTO wholeturn_schema VALUES (0)",
)

# Of a copy: keys of the entries that it shares.
_SHARED_KEYS = """
    AND (head.shares IS NULL OR NOT EXISTS (
        WITH RECURSIVE parts (number, last) AS (
            SELECT source, up_to FROM wholeturn_shared WHERE session = head.number
            UNION ALL
            SELECT source, least(up_to, last) FROM parts JOIN wholeturn_shared ON session = number
        )
        SELECT 1 FROM parts JOIN wholeturn_entries AS there ON there.session = parts.number
        WHERE there.key = given.key AND there.seq <= parts.last))"""
_SHARES = "(SELECT up_to FROM wholeturn_shared WHERE session = number) AS shares"

_COPIES_AND_CHECKPOINTS = (
    # A copy's entries up to a seq are those of another number, which stays without a head as long as somebody
    # shares it.
    """CREATE TABLE wholeturn_shared (
        session bigint PRIMARY KEY,
        source bigint NOT NULL,
        up_to bigint NOT NULL
    )""",
    "CREATE INDEX wholeturn_shared_by_source ON wholeturn_shared (source)",
    # What was made of a session's entries behind `after` up to `seq`, to be had at once.
    """CREATE TABLE wholeturn_checkpoints (
        session bigint NOT NULL,
        seq bigint NOT NULL,
        after bigint NOT NULL,
        key text NOT NULL,
        value bytea NOT NULL,
        PRIMARY KEY (session, seq)
    )""",
    _APPEND.format(head=f"number, last_seq, {_SHARES}", known=_SHARED_KEYS, channel=CHANNEL).replace(
        "CREATE", "CREATE OR REPLACE", 1
    ),
    # A process of the older version knows nothing of copies: it must not delete a source under them.
    """CREATE FUNCTION wholeturn_guard() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF EXISTS (
                SELECT 1 FROM wholeturn_shared JOIN gone ON source = gone.session AND seq <= up_to
            ) THEN
                RAISE EXCEPTION 'other sessions share these entries';
            END IF;
            RETURN NULL;
        END $$""",
    """CREATE TRIGGER wholeturn_guard AFTER DELETE ON wholeturn_entries
        REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION wholeturn_guard()""",
)

# Not by to_regclass: what that remembers is not looked at anew within a transaction.
_TABLES = (
    "SELECT count(*) FROM pg_catalog.pg_class WHERE relname = 'wholeturn_schema'"
    " AND relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = current_schema())"
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST_TABLES, _COPIES_AND_CHECKPOINTS)
"""Step n turns tables of version n into version n + 1. Steps are only ever added at the end."""

SCHEMA_VERSION = len(MIGRATIONS)


def prepare(connection: Connection, shown: str) -> None:
    """Bring the tables to SCHEMA_VERSION in one transaction. shown: the address as it may be shown.

    Raises StoreTrouble for tables of a newer version, which stay as they are, StoreError for a database that
    cannot hold all text.
    """
    encoding = _one(connection, "SHOW server_encoding")
    if encoding != "UTF8":
        raise StoreError(
            f"the session store {shown} must be a database with the encoding UTF8, not {encoding}"
        )
    if _is_current(connection, shown):
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATING,))
        # Read again: another process may have been here while this one waited for the lock.
        if _is_current(connection, shown):
            return
        for step in MIGRATIONS[_version(connection) :]:
            for statement in step:
                connection.execute(statement.encode())
        connection.execute("UPDATE wholeturn_schema SET version = %s", (SCHEMA_VERSION,))


def _is_current(connection: Connection, shown: str) -> bool:
    version = _version(connection)
    if version > SCHEMA_VERSION:
        detail = f"schema {version}, this one knows {SCHEMA_VERSION}"
        raise StoreTrouble(TroubleKind.NEWER, shown, detail)
    return version == SCHEMA_VERSION


def _version(connection: Connection) -> int:
    if not _one(connection, _TABLES):
        return 0
    return int(_one(connection, "SELECT version FROM wholeturn_schema") or 0)


def _one(connection: Connection, query: str) -> str | int | None:
    row = connection.execute(query.encode()).fetchone()
    return None if row is None else row[0]
