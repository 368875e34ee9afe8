"""Writing to PostgreSQL and reading from it: SQL in, values of the Store port out. Knows no thread.

Each function that writes makes the work of one transaction. Whoever changes a session, its entries or its
lease locks the session's row first. What else is read of it is read by a later statement: one that had to
wait for the lock sees the other tables as they were before.
"""

from collections.abc import Callable, Sequence
from typing import Any

from runtime.store.common.faults import Place, encode, fork_taken, id_taken, no_session, no_source
from runtime.store.common.leases import Held, check, held_in, live_holder, refuse_others
from runtime.store.postgres.schema import CHANNEL, Connection
from runtime.values.stored import HeadChange, Lease, SessionPage, SessionRecord, StoredEntry

SESSION_COLUMNS = "session_id, cwd, created_at, updated_at, title, state"

_SESSION = f"SELECT {SESSION_COLUMNS} FROM wholeturn_sessions WHERE session_id = %s"
PARTS = (
    "WITH RECURSIVE parts (number, after, last) AS ("
    "SELECT number, coalesce(up_to, 0), 4611686018427387904 FROM wholeturn_sessions"
    " LEFT JOIN wholeturn_shared ON session = number WHERE session_id = %s"
    " UNION ALL SELECT mine.source, least(coalesce(theirs.up_to, 0), after), after"
    " FROM parts JOIN wholeturn_shared AS mine ON mine.session = number"
    " LEFT JOIN wholeturn_shared AS theirs ON theirs.session = mine.source) "
)
"""A session's segments: entries with after < seq <= last are those of a number. A copy has several."""
_ENTRIES = (
    f"{PARTS} SELECT turn_id, key, kind, payload, seq FROM parts CROSS JOIN LATERAL"
    " (SELECT * FROM wholeturn_entries WHERE session = number AND seq > greatest(after, %s) AND seq <= last"
    " ORDER BY seq LIMIT %s) AS found ORDER BY seq LIMIT %s"
)
_POSITION = (
    f"{PARTS} SELECT seq FROM parts JOIN wholeturn_entries ON session = number AND key = %s"
    " WHERE seq > after AND seq <= last"
)
_LIST = (
    f"SELECT {SESSION_COLUMNS} FROM wholeturn_sessions"
    " {where} ORDER BY updated_at DESC, session_id DESC LIMIT %s"
)


def session(connection: Connection, session_id: str) -> SessionRecord | None:
    """One session's head."""
    row = connection.execute(_SESSION, (session_id,)).fetchone()
    return None if row is None else SessionRecord(*row)


def entries(connection: Connection, session_id: str, after: int, limit: int) -> list[StoredEntry]:
    """Entries with seq > after, at most `limit`."""
    given = (session_id, max(after, 0), max(limit, 0), max(limit, 0))
    # Binary: text form would send two characters for each byte of a payload.
    rows = connection.execute(_ENTRIES, given, binary=True)
    return [StoredEntry(*row) for row in rows]


def position(connection: Connection, session_id: str, key: str) -> int | None:
    """The number of the entry with that key."""
    row = connection.execute(_POSITION, (session_id, key)).fetchone()
    return None if row is None else int(row[0])


def page(connection: Connection, cwd: str | None, place: Place | None, limit: int) -> SessionPage:
    """One page of heads, newest change first."""
    tests = ["cwd = %s"] * (cwd is not None) + ["(updated_at, session_id) < (%s, %s)"] * (place is not None)
    where = f"WHERE {' AND '.join(tests)}" if tests else ""
    limit = max(limit, 1)
    given = (() if cwd is None else (cwd,)) + (place or ())
    rows = connection.execute(_LIST.format(where=where).encode(), (*given, limit + 1)).fetchall()
    records = tuple(SessionRecord(*row) for row in rows[:limit])
    return SessionPage(records, encode(records[-1]) if len(rows) > limit else None)


Clock = Callable[[], float] | None
"""Seconds since 1970 for leases; None: the time of the server, the same for all."""

PURGED_AT_ONCE = 20

_NOTIFY = f"pg_notify({CHANNEL}, session_id)"
_LOCK = "SELECT number, last_seq FROM wholeturn_sessions WHERE session_id = %s FOR NO KEY UPDATE"
_LOCK_WHOLE = "SELECT number FROM wholeturn_sessions WHERE session_id = %s FOR UPDATE"
_LOCK_SOURCE = "SELECT number FROM wholeturn_sessions WHERE session_id = %s FOR KEY SHARE"
_HELD = (
    "SELECT fence, holder, owner, expires_at, extract(epoch FROM clock_timestamp())::float8"
    " FROM (SELECT 1) AS one LEFT JOIN wholeturn_leases"
    " ON session = (SELECT number FROM wholeturn_sessions WHERE session_id = %s)"
)
_HEAD = f"SELECT {SESSION_COLUMNS} FROM wholeturn_sessions WHERE session_id = %s"
_CREATE = (
    f"INSERT INTO wholeturn_sessions ({SESSION_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s)"
    f" ON CONFLICT (session_id) DO NOTHING RETURNING number, {_NOTIFY}"
)
_APPEND = (
    "SELECT is_there, held_fence, held_by, held_owner, held_until, now_is FROM wholeturn_append("
    "%s, %b::text[], %b::text[], %b::text[], %b::bytea[], %s, %s, %s, %s, %s, %s, %s)"
)
_LAST = "SELECT last_seq FROM wholeturn_sessions WHERE number = %s"
_OWNER = f"{PARTS} SELECT number FROM parts WHERE after < %s AND %s <= last"
_SHARE = """
    WITH added AS (
        INSERT INTO wholeturn_shared (session, source, up_to) VALUES (%s, %s, %s) RETURNING session, up_to
    )
    UPDATE wholeturn_sessions SET last_seq = up_to FROM added WHERE number = session"""
_OLD = (
    "SELECT number, session_id FROM wholeturn_sessions AS head WHERE updated_at < %s AND NOT EXISTS"
    " (SELECT 1 FROM wholeturn_leases WHERE session = number AND expires_at > %s)"
    " ORDER BY updated_at LIMIT %s FOR UPDATE OF head SKIP LOCKED"
)
_NOW = "SELECT extract(epoch FROM clock_timestamp())::float8"
_OF_A_SESSION = ("wholeturn_recalls", "wholeturn_recalled", "wholeturn_leases")
_SHARED_TABLES = ("wholeturn_entries", "wholeturn_checkpoints")
_PRUNING = 0x574C5456
"""The advisory lock of who removes a session: a transaction of it sees what all before it left."""
_HAS_HEAD = "SELECT 1 FROM wholeturn_sessions WHERE number = %s"
_REACH = "SELECT max(up_to) FROM wholeturn_shared WHERE source = %s"
_SOURCE = "SELECT source FROM wholeturn_shared WHERE session = %s"
_SHARE_LESS = "UPDATE wholeturn_shared SET up_to = least(up_to, %s) WHERE session = %s"
_SHARE_NOTHING = "DELETE FROM wholeturn_shared WHERE up_to >= %s AND session = %s"


def create(connection: Connection, record: SessionRecord, *, again: bool) -> None:
    """A new session; StoreError when the id is taken. again: the very same may be there from a try before."""
    if _inserted(connection, record) is None and not (again and is_there(connection, record)):
        raise id_taken(record.session_id)


def append(
    connection: Connection,
    session_id: str,
    entries: Sequence[StoredEntry],
    head: HeadChange,
    lease: Lease | None,
    clock: Clock,
) -> None:
    """Add entries behind the last one, skipping keys that are there; StoreError without the session.

    One statement, which is a transaction of its own.
    """
    first = {entry.key: entry for entry in reversed(entries)}
    kept = [entry for entry in entries if first[entry.key] is entry]
    columns = [[getattr(entry, name) for entry in kept] for name in ("turn_id", "key", "kind", "payload")]
    mine = (None, None) if lease is None else (lease.fence, lease.holder.id)
    given = (session_id, *columns, head.updated_at, plain(head.title), head.state, *mine)
    passed: int | None = None
    while True:
        row = connection.execute(_APPEND, (*given, passed, clock and clock())).fetchone()
        assert row is not None, "a function gives a row"
        there, *found, now = row
        if not there:
            raise no_session(session_id)
        held = held_in(found)
        if lease is None or held is None:
            return
        # Raises, unless we know better than the server that its holder is gone.
        check(lease, held, now)
        passed = held.fence


def fork(connection: Connection, record: SessionRecord, source_id: str, up_to: int, *, again: bool) -> None:
    """A new session that shares the source's first entries, see the port. again: as for `create`."""
    if again and is_there(connection, record):
        return
    source = connection.execute(_LOCK_SOURCE, (source_id,)).fetchone()
    if source is None:
        raise no_source(source_id)
    number = _inserted(connection, record)
    if number is None:
        raise fork_taken(record.session_id)
    last = min(up_to, _one(connection, _LAST, source))
    # Of the segment that has the last one: what that shares is shared with whom it shares it.
    owner = _one(connection, _OWNER, (source_id, last, last)) if last > 0 else 0
    if owner:
        connection.execute(_SHARE, (number, owner, last))


def delete(connection: Connection, session_id: str, clock: Clock) -> bool:
    """Remove one session; False when there is none. Raises SessionBusy."""
    found = connection.execute(_LOCK_WHOLE, (session_id,)).fetchone()
    if found is not None:
        held, now = held_now(connection, session_id, clock)
        refuse_others(session_id, held, "", now)
        _remove(connection, found[0])
    return found is not None


def purge(connection: Connection, older_than: str, clock: Clock) -> tuple[int, int]:
    """Remove some of the sessions last changed before that time: (how many were looked at, were removed)."""
    if clock is None:
        (now,) = connection.execute(_NOW).fetchone() or (0.0,)
    else:
        now = clock()
    old = connection.execute(_OLD, (older_than, now, PURGED_AT_ONCE)).fetchall()
    removed = 0
    for number, session_id in old:
        # Taken perhaps between the look and the lock.
        held, now = held_now(connection, session_id, clock)
        if live_holder(held, now) is None:
            _remove(connection, number)
            removed += 1
    return len(old), removed


def lock(connection: Connection, session_id: str) -> tuple[int, int]:
    """Lock a session: (its number, its last entry's seq). StoreError without it."""
    found = connection.execute(_LOCK, (session_id,)).fetchone()
    if found is None:
        raise no_session(session_id)
    return found[0], found[1]


def held_now(connection: Connection, session_id: str, clock: Clock) -> tuple[Held | None, float]:
    """The lease of a session that is locked, and the time."""
    return _held_now(connection.execute(_HELD, (session_id,)).fetchone(), clock)


def is_there(connection: Connection, record: SessionRecord) -> bool:
    """Whether there is this very session."""
    found = connection.execute(_HEAD, (record.session_id,)).fetchone()
    return found is not None and SessionRecord(*found) == record


def plain(text: str | None) -> str | None:
    """A text that may come from anywhere without the one character that PostgreSQL cannot hold."""
    return None if text is None else text.replace("\0", "\ufffd")


def _held_now(row: tuple[Any, ...] | None, clock: Clock) -> tuple[Held | None, float]:
    assert row is not None, "the statement always gives a row"
    *lease, now = row
    return held_in(lease), now if clock is None else clock()


def _inserted(connection: Connection, record: SessionRecord) -> int | None:
    row = (
        record.session_id,
        record.cwd,
        record.created_at,
        record.updated_at,
        plain(record.title),
        record.state,
    )
    found = connection.execute(_CREATE, row).fetchone()
    return None if found is None else int(found[0])


def _remove(connection: Connection, number: int) -> None:
    for table in _OF_A_SESSION:
        connection.execute(f"DELETE FROM {table} WHERE session = %s".encode(), (number,))
    connection.execute("DELETE FROM wholeturn_sessions WHERE number = %s", (number,))
    _prune(connection, number)


def _prune(connection: Connection, number: int) -> None:
    """Remove what nobody shares of a number that has no head, then of the one that it shared with.

    One at a time: two copies that go at once must not each take the other for one that stays.
    """
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_PRUNING,))
    while not _one(connection, _HAS_HEAD, (number,)):
        reach = _one(connection, _REACH, (number,))
        for table in _SHARED_TABLES:
            connection.execute(
                f"DELETE FROM {table} WHERE session = %s AND seq > %s".encode(), (number, reach)
            )
        source = _one(connection, _SOURCE, (number,))
        connection.execute(_SHARE_LESS if reach else _SHARE_NOTHING, (reach, number))
        if not source:
            return
        number = source


def _one(connection: Connection, query: str, given: Sequence[object]) -> int:
    row = connection.execute(query.encode(), given).fetchone()
    return 0 if row is None else int(row[0] or 0)
