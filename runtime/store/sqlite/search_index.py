"""The full-text index of a session: made when it is first searched, and then as far as it was searched.

Writing a transcript never waits for it. Each session has a table of its own, without a copy of the text, so
that it goes with the session and leaves nothing; only the sessions searched last have one. It holds nothing
that the entries do not: to lose it costs time. Knows SQL, no thread.
"""

import sqlite3
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from runtime.store.common.faults import StoreTrouble
from runtime.store.common.search import before_entry, hit, phrases_of, text_of, words_of
from runtime.store.common.search import search as scan
from runtime.store.sqlite import queries
from runtime.store.sqlite.schema import LAST_SEQ
from runtime.store.sqlite.shared_entries import last_seq, rows, segments
from runtime.store.sqlite.statements import Work, drop
from runtime.values.stored import Hit, Store

KEPT = 32
"""Sessions that have an index at the same time."""
_BATCH_BYTES = 256 * 1024
_BATCH_ENTRIES = 500

_FTS5 = "SELECT 1 FROM pragma_module_list WHERE name = 'fts5'"
_NUMBER = "SELECT number FROM sessions WHERE session_id = ?"
_PROGRESS = "SELECT seq FROM recalls WHERE session = ?"
_CREATE = "CREATE VIRTUAL TABLE {table} USING fts5(words, content='', columnsize=0, tokenize='ascii')"
_USED = (
    "INSERT INTO recalls VALUES (?, ?, (SELECT coalesce(max(used), 0) + 1 FROM recalls))"
    " ON CONFLICT DO UPDATE SET seq = excluded.seq, used = excluded.used"
)
_OLDEST = "SELECT session FROM recalls ORDER BY used DESC LIMIT -1 OFFSET ?"


class Sought(NamedTuple):
    """What `Store.search` was asked."""

    session_id: str
    query: str
    limit: int
    before_turn: str | None


class Batch(NamedTuple):
    """What is to be indexed next: entries behind `after`, up to `last`. rows: (seq, words)."""

    session_id: str
    after: int
    last: int
    rows: list[tuple[int, str]]


async def search(
    store: Store,
    read: Callable[[Callable[[sqlite3.Connection], Any]], Coroutine[Any, Any, Any]],
    write: Callable[[Work], Coroutine[Any, Any, None]],
    sought: Sought,
) -> list[Hit]:
    """`Store.search`. Indexes first what is not indexed yet; where that is impossible, all is read."""
    session_id, query, limit, before_turn = sought
    before = await before_entry(store, session_id, before_turn)
    with suppress(StoreTrouble):
        while isinstance(found := await read(partial(look, sought=sought, before=before)), Batch):
            await write(index(found))
        if found is not None:
            return list(found)
    return await scan(store, session_id, query, limit, before_turn)


def look(connection: sqlite3.Connection, sought: Sought, before: int | None) -> list[Hit] | Batch | None:
    """The best hits, best first; or what must be indexed before they can be found; None: no index here."""
    phrases = phrases_of(sought.query)
    head = connection.execute(_NUMBER, (sought.session_id,)).fetchone()
    if head is None or not phrases or sought.limit <= 0:
        return []
    if connection.execute(_FTS5).fetchone() is None:
        return None
    connection.execute("BEGIN")
    try:
        batch = _unread(connection, sought.session_id, head[0])
        return batch or _find(connection, head[0], phrases, sought.limit, before)
    finally:
        connection.execute("COMMIT")


def index(batch: Batch) -> Work:
    """Take a batch in. Nothing happens when another process has done so, or the session is gone."""

    def work(connection: sqlite3.Connection) -> None:
        head = connection.execute(_NUMBER, (batch.session_id,)).fetchone()
        if head is None or _progress(connection, head[0]) != batch.after:
            return
        table = f"recall_{head[0]}"
        if not batch.after:
            drop(connection, head[0])
            connection.execute(_CREATE.format(table=table))
        connection.executemany(f"INSERT INTO {table} (rowid, words) VALUES (?, ?)", batch.rows)
        connection.execute(_USED, (head[0], batch.last))
        for (oldest,) in connection.execute(_OLDEST, (KEPT,)).fetchall():
            drop(connection, oldest)

    return work


def _progress(connection: sqlite3.Connection, number: int) -> int:
    found = connection.execute(_PROGRESS, (number,)).fetchone()
    last = last_seq(connection, segments(connection, number))
    # A row that knows of more than there is was damaged: the index is made anew.
    known = found is not None and type(found[0]) is int and 0 <= found[0] <= last
    return found[0] if known else 0


def _unread(connection: sqlite3.Connection, session_id: str, number: int) -> Batch | None:
    after = last = _progress(connection, number)
    found: list[tuple[int, str]] = []
    size = 0
    with queries.leniently(connection):
        for row in rows(connection, segments(connection, number), after, _BATCH_ENTRIES):
            _, _, kind, payload, last = queries.entry(row)
            if words := words_of(text_of(kind, payload)):
                found.append((last, words))
                size += len(words)
            if size > _BATCH_BYTES:
                break
    return Batch(session_id, after, last, found) if last > after else None


def _find(
    connection: sqlite3.Connection, number: int, phrases: tuple[str, ...], limit: int, before: int | None
) -> list[Hit]:
    if not _progress(connection, number):
        return []
    last = LAST_SEQ if before is None else before - 1
    given = [value for phrase in phrases for value in (phrase, _matching(phrase), last)]
    statement = _ranked(f"recall_{number}", len(phrases))
    places = connection.execute(statement, (*given, limit)).fetchall()
    parts = segments(connection, number)
    with queries.leniently(connection):
        found = [row for (seq,) in places for row in rows(connection, parts, seq - 1, 1)]
        return [hit(queries.entry(row), phrases) for row in found]


def _ranked(table: str, phrases: int) -> str:
    """A phrase weighs the more, the fewer entries hold it; of equal entries the newest comes first."""
    match = f"SELECT ?, rowid FROM {table} WHERE {table} MATCH ? AND rowid <= ?"
    return (
        f"WITH held (phrase, seq) AS MATERIALIZED ({' UNION ALL '.join([match] * phrases)}),"
        " weights (phrase, weight) AS (SELECT phrase, 1.0 / count(*) FROM held GROUP BY phrase)"
        " SELECT seq FROM held JOIN weights USING (phrase) GROUP BY seq"
        " ORDER BY round(sum(weight), 9) DESC, seq DESC LIMIT ?"
    )


def _matching(phrase: str) -> str:
    """A phrase in the query language of FTS5, where nothing between quotes has a meaning."""
    quoted = phrase.removesuffix("*")
    return f'"{quoted}"*' if phrase.endswith("*") else f'"{quoted}"'
