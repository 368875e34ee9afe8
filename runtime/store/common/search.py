"""Search by reading everything, for stores and places without an index; text as the words that it compares.

Its answers are those of an index: an entry counts the more, the rarer the phrases in it. Every store takes
its words from here, so that all find the same: words without case and accents; scripts that put no space
between words are taken sign by sign, and asked for in pairs of signs. Knows no store.
"""

import re
import unicodedata
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from heapq import nlargest
from itertools import groupby, pairwise
from typing import Any

import orjson

from runtime.values.stored import Hit, Store, StoredEntry

SNIPPET_CHARS = 300
"""Length of the piece of text that shows a hit."""
_BEFORE_CHARS = 80
_PHRASES_AT_MOST = 16
_PREFIX_FROM = 3
"""A query's word of this length also finds longer words that begin with it."""

# Kana, Han and their neighbours; Thai, Lao, Myanmar, Khmer.
_SIGNS = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
_WORD = re.compile(rf"[{_SIGNS}]|[^\W_{_SIGNS}]+")
_SIGN = re.compile(f"[{_SIGNS}]")
_ACCENTS = re.compile("[\u0300-\u036f]+")

_TEXTS: Mapping[str, tuple[str, ...]] = {
    "prompt": ("text",),
    "reply": ("text",),
    "tool": ("title", "text"),
    "end": ("told",),
}
"""Kind of step -> its fields that can be searched. Partial texts are not: their reply has them again."""


def text_of(kind: str, payload: bytes) -> str:
    """What can be searched of an entry; '' for nothing, also when the payload cannot be read."""
    fields = _TEXTS.get(kind)
    if fields is None:
        return ""
    try:
        step = orjson.loads(payload)
    except ValueError:
        return ""
    values = (step.get(field) for field in fields) if isinstance(step, dict) else ()
    return "\n".join(value for value in values if isinstance(value, str) and value)


def words_of(text: str) -> str:
    """The words of a text, one space between two."""
    return " ".join(_WORD.findall(_plain(text)))


def phrases_of(query: str) -> tuple[str, ...]:
    """What a query asks for: each a word or some in a row, as `words_of` writes them. None in an empty one.

    `*` at the end: longer words that begin so are meant too.
    """
    found: dict[str, None] = {}
    for piece in _plain(query).split():
        for signs, run in groupby(_WORD.findall(piece), key=lambda word: bool(_SIGN.match(word))):
            for phrase in _pairs(list(run)) if signs else [_with_longer(list(run))]:
                found[phrase] = None
    return tuple(found)[:_PHRASES_AT_MOST]


def has_phrase(words: str, phrase: str) -> bool:
    """Whether `words`, with a space at both ends, hold the phrase."""
    return f" {phrase[:-1]}" in words if phrase.endswith("*") else f" {phrase} " in words


def snippet(text: str, phrases: tuple[str, ...]) -> str:
    """A piece of the text around the longest phrase that stands in it as asked for; else its beginning."""
    start = next(filter(None, (_place(text, phrase) for phrase in sorted(phrases, key=len, reverse=True))), 0)
    start = max(start - _BEFORE_CHARS, 0) if len(text) > SNIPPET_CHARS else 0
    start = min(start, max(len(text) - SNIPPET_CHARS, 0))
    end = start + SNIPPET_CHARS
    piece = " ".join(text[start:end].split())
    return f"{'…' * (start > 0)}{piece}{'…' * (end < len(text))}"


def _place(text: str, phrase: str) -> int | None:
    gap = r"[\W_]*"
    between = gap.join(re.escape(word) for word in phrase.removesuffix("*").split())
    found = re.search(between, text, re.IGNORECASE)
    return None if found is None else found.start()


def _plain(text: str) -> str:
    if text.isascii():
        return text.lower()
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFKC", bare).casefold()


def _pairs(signs: list[str]) -> list[str]:
    return [f"{first} {second}" for first, second in pairwise(signs)] or signs


def _with_longer(words: list[str]) -> str:
    return " ".join(words) + ("*" if len(words[-1]) >= _PREFIX_FROM else "")


_PAGE = 500


async def search(store: Store, session_id: str, query: str, limit: int, before_turn: str | None) -> list[Hit]:
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
