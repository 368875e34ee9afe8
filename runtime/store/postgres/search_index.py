"""Full-text search in PostgreSQL: the words of a session's entries, taken in when it is first searched.

Writing a transcript never waits for it. A vector holds the words without their places: it tells which entries
hold all words of a phrase, and of those that ask for words in a row the text is read. So the answers are
those of `common.search`, whatever the length of an entry. It holds nothing that the entries do not.
"""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from runtime.store.common.faults import StoreTrouble
from runtime.store.common.search import before_entry, best, has_phrase, hit, phrases_of, text_of, words_of
from runtime.store.common.search import search as scan
from runtime.store.postgres.schema import Connection
from runtime.store.postgres.statements import entries
from runtime.values.stored import Hit, Store, StoredEntry

_BATCH = 500
_LEXEME_BYTES = 2000
_VECTOR_BYTES = 500_000
"""Longest word and longest sum of words that a vector is asked to hold; the limits are 2046 and 1 MB."""

_PROGRESS = (
    "SELECT number, last_seq, coalesce((SELECT seq FROM wholeturn_recalled WHERE session = number), 0)"
    " FROM wholeturn_sessions WHERE session_id = %s"
)
_LOCK = (
    "SELECT coalesce((SELECT seq FROM wholeturn_recalled WHERE session = number), 0)"
    " FROM wholeturn_sessions WHERE number = %s FOR NO KEY UPDATE"
)
_ADD = (
    "INSERT INTO wholeturn_recalls (session, seq, words)"
    " SELECT %s, seq, array_to_tsvector(string_to_array(words, ' '))"
    " FROM unnest(%s::bigint[], %s::text[]) AS read (seq, words) ON CONFLICT DO NOTHING"
)
_REACHED = (
    "INSERT INTO wholeturn_recalled VALUES (%s, %s)"
    " ON CONFLICT (session) DO UPDATE SET seq = greatest(wholeturn_recalled.seq, excluded.seq)"
)
_FIND = (
    "SELECT seq, words IS NULL, ARRAY(SELECT coalesce(words @@ asked, true)"
    " FROM unnest(%s::tsquery[]) WITH ORDINALITY AS each (asked, place) ORDER BY place)"
    " FROM wholeturn_recalls WHERE session = %s AND seq < %s"
    " AND (words IS NULL OR words @@ %s::tsquery) ORDER BY seq"
)
_LAST = 2**62


class Sought(NamedTuple):
    """What `Store.search` was asked."""

    session_id: str
    query: str
    limit: int
    before_turn: str | None


class Progress(NamedTuple):
    """A session's number, its last entry, and how far its words were taken in."""

    number: int
    last: int
    reached: int


Run = Callable[[Callable[[Connection], Any]], Coroutine[Any, Any, Any]]


async def search(store: Store, read: Run, write: Run, sought: Sought) -> list[Hit]:
    """`Store.search`. Takes in first what is new; where that is impossible, all is read."""
    session_id, query, limit, before_turn = sought
    phrases = phrases_of(query)
    if not phrases or limit <= 0:
        return []
    before = await before_entry(store, session_id, before_turn)
    with suppress(StoreTrouble):
        progress = await read(partial(_progress, session_id=session_id))
        while progress is not None and progress.reached < progress.last:
            page = await store.entries(session_id, after=progress.reached, limit=_BATCH)
            if not page:
                break
            await write(partial(_take_in, progress=progress, page=page))
            progress = progress._replace(reached=page[-1].seq)
        if progress is None:
            return []
        found: list[Hit] = await read(
            partial(_find, sought=sought, number=progress.number, phrases=phrases, before=before)
        )
        return found
    return await scan(store, session_id, query, limit, before_turn)


def _progress(connection: Connection, session_id: str) -> Progress | None:
    row = connection.execute(_PROGRESS, (session_id,)).fetchone()
    return None if row is None else Progress(*row)


def _take_in(connection: Connection, progress: Progress, page: list[StoredEntry]) -> None:
    """Nothing happens when another process has done so, or the session is gone."""
    row = connection.execute(_LOCK, (progress.number,)).fetchone()
    if row is None:
        return
    rows = [(entry.seq, _lexemes(entry)) for entry in page]
    seqs, words = [seq for seq, found in rows if found != ""], [found for _, found in rows if found != ""]
    connection.execute(_ADD, (progress.number, seqs, words))
    connection.execute(_REACHED, (progress.number, page[-1].seq))


def _lexemes(entry: StoredEntry) -> str | None:
    """An entry's words, each once; '' for none, None for more than a vector can hold."""
    words = sorted(set(words_of(text_of(entry.kind, entry.payload)).split()))
    sizes = [len(word.encode()) for word in words]
    fits = not words or (max(sizes) <= _LEXEME_BYTES and sum(sizes) <= _VECTOR_BYTES)
    return " ".join(words) if fits else None


def _find(
    connection: Connection, sought: Sought, number: int, phrases: tuple[str, ...], before: int | None
) -> list[Hit]:
    asked = [_matching(phrase) for phrase in phrases]
    anything = " | ".join(f"({one})" for one in asked)
    given = (asked, number, _LAST if before is None else before, anything)
    found: list[tuple[int, list[int]]] = []
    for seq, unknown, fits in connection.execute(_FIND, given):
        held = [place for place, fit in enumerate(fits) if fit]
        if unknown or any(" " in phrases[place] for place in held):
            held = _in_text(connection, sought.session_id, seq, phrases, held)
        if held:
            found.append((seq, held))
    hits: list[Hit] = []
    for seq in best(found, len(phrases), sought.limit):
        hits += [hit(entry, phrases) for entry in entries(connection, sought.session_id, seq - 1, 1)]
    return hits


def _in_text(
    connection: Connection, session_id: str, seq: int, phrases: tuple[str, ...], held: list[int]
) -> list[int]:
    """Those of the phrases that stand in an entry's text as they are asked for."""
    [entry] = entries(connection, session_id, seq - 1, 1)
    words = f" {words_of(text_of(entry.kind, entry.payload))} "
    return [place for place in held if has_phrase(words, phrases[place])]


def _matching(phrase: str) -> str:
    """All words of a phrase in the query language, where nothing between quotes has a meaning."""
    first, *rest = reversed(phrase.removesuffix("*").split())
    return " & ".join([f"'{first}'{':*' * phrase.endswith('*')}", *(f"'{word}'" for word in rest)])
