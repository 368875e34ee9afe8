"""Search by reading everything: for stores without an index, and for what an index cannot have.

Its answers are those of the index, see `recall`: an entry counts the more, the rarer the phrases in it.
"""

from collections.abc import Callable, Coroutine
from functools import partial
from heapq import nlargest
from typing import Any

from runtime.store.words import has_phrase, phrases_of, snippet, text_of, words_of
from runtime.stored import Hit, Store, StoredEntry

_PAGE = 500


async def search(store: Store, session_id: str, query: str, limit: int, before_turn: str | None) -> list[Hit]:
    """See `Store.search`."""
    page = partial(store.entries, session_id)
    phrases = phrases_of(query)
    if not phrases or limit <= 0:
        return []
    found = await _found(page, phrases, await before_entry(store, session_id, before_turn))
    hits: list[Hit] = []
    for seq in best(found, len(phrases), limit):
        hits += [hit(entry, phrases) for entry in await page(after=seq - 1, limit=1)]
    return hits


def best(found: list[tuple[int, list[int]]], phrases: int, limit: int) -> list[int]:
    """The entries that count most, best first; of equal ones the newest. found: (seq, the phrases in it)."""
    counts = [sum(phrase in held for _, held in found) for phrase in range(phrases)]
    scored = ((round(sum(1 / counts[phrase] for phrase in held), 9), seq) for seq, held in found)
    return [seq for _score, seq in nlargest(limit, scored)]


async def before_entry(store: Store, session_id: str, before_turn: str | None) -> int | None:
    """The seq of a turn's first entry; None for no turn, or one that is not there."""
    return await store.position(session_id, f"turn:{before_turn}:prompt") if before_turn else None


def hit(entry: StoredEntry, phrases: tuple[str, ...]) -> Hit:
    """An entry as it is found."""
    text = text_of(entry.kind, entry.payload)
    return Hit(entry.turn_id, entry.key, entry.kind, entry.seq, snippet(text, phrases))


async def _found(
    page: Callable[..., Coroutine[Any, Any, list[StoredEntry]]], phrases: tuple[str, ...], before: int | None
) -> list[tuple[int, list[int]]]:
    """(seq, numbers of the phrases in it) of each entry that has one."""
    found: list[tuple[int, list[int]]] = []
    after = 0
    while entries := await page(after=after, limit=_PAGE):
        for entry in entries:
            if before is not None and entry.seq >= before:
                return found
            words = f" {words_of(text_of(entry.kind, entry.payload))} "
            if held := [place for place, phrase in enumerate(phrases) if has_phrase(words, phrase)]:
                found.append((entry.seq, held))
        after = entries[-1].seq
    return found
