"""Keeping every outgoing line small: texts split or cut by the bytes they take as JSON. Knows no message.

Clients give up on lines between 10 and 64 MiB, so no text in a message takes more than `TEXT_LIMIT`.
"""

import json
from collections.abc import Iterator, Mapping
from json.encoder import encode_basestring

import orjson

TEXT_LIMIT = 1024 * 1024
"""Bytes of one text as a JSON string, without its quotes."""

_WORST = 6
"""Bytes that one character may take: a control character is written as \\u0000."""

ALWAYS_FITS = TEXT_LIMIT // _WORST
"""Characters that need no measuring."""

_STEP = 8192
"""Characters measured at a time; small against the limit, so pieces come out nearly full."""


def encoded_size(text: str) -> int:
    """Bytes of the text inside a JSON string (UTF-8, not ASCII-only). Lone surrogates count 3."""
    return len(encode_basestring(text).encode("utf-8", "surrogatepass")) - 2


def fits(text: str, limit: int = TEXT_LIMIT) -> bool:
    """True if the text takes at most `limit` bytes; measured only where its length does not decide."""
    if len(text) * _WORST <= limit:
        return True
    return len(text) <= limit and encoded_size(text) <= limit


def split(text: str, limit: int = TEXT_LIMIT) -> Iterator[str]:
    """Pieces of at most `limit` bytes (>= 6) that join to the text; one piece, maybe empty, if it fits."""
    if fits(text, limit):
        yield text
        return
    step = max(1, min(_STEP, limit // _WORST))
    start, used = 0, 0
    for at in range(0, len(text), step):
        size = encoded_size(text[at : at + step])
        if used + size > limit:
            yield text[start:at]
            start, used = at, 0
        used += size
    yield text[start:]


def cut(text: str, limit: int = TEXT_LIMIT) -> str:
    """The text, or its beginning and a line that says how much is missing; at most `limit` (>= 100) bytes."""
    if fits(text, limit):
        return text
    head = next(split(text, limit - 80))
    return f"{head}\n[{len(text) - len(head)} of {len(text)} characters not shown]"


def is_within(value: object, limit: int) -> bool:
    """True if the value's JSON takes at most `limit` bytes; false also for what the encoder refuses."""
    try:
        return len(orjson.dumps(value)) <= limit
    except TypeError:
        return False


def bounded_object(value: Mapping[str, object], limit: int = TEXT_LIMIT) -> dict[str, object]:
    """The object, or one whose only key `json` holds its JSON text, cut.

    The latter also for what the encoder refuses: lone surrogates, integers beyond 64 bits, deep nesting.
    """
    whole = dict(value)
    try:
        encoded = orjson.dumps(whole)
    except TypeError:
        return {"json": cut(_any_json(whole), limit)}
    return whole if len(encoded) <= limit else {"json": cut(encoded.decode(), limit)}


def _any_json(value: object) -> str:
    try:
        return json.dumps(value, default=str)
    except (ValueError, RecursionError):
        return "[nested too deeply to show]"
