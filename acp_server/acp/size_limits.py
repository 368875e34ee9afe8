"""No outgoing line too large: texts split or cut by their bytes as JSON, stored prompt blocks made to fit.

Clients give up on lines between 10 and 64 MiB, so no text in a message takes more than `TEXT_LIMIT`. The
transcript keeps the whole block; only what goes over the wire is smaller. Knows no message and no session.
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


_BLOCK_LIMIT = 4 * 1024 * 1024
"""Bytes of a whole block as JSON."""


_TEXTS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("name", "uri"),
    "resource": (),
}
"""The kinds of blocks, with the texts that each needs."""


def sendable_blocks(block: Mapping[str, object]) -> list[dict[str, object]]:
    """The block without nulls, or what stands for it: pieces of a text, a cut resource, a line naming it."""
    whole = _without_nulls(block)
    if not _is_known(whole):
        return [{"type": "text", "text": "[a block of this prompt cannot be shown again]"}]
    text = whole.get("text")
    if is_within(whole, _BLOCK_LIMIT):
        return [whole]
    if isinstance(text, str):
        return [{"type": "text", "text": piece} for piece in split(text)]
    return [_smaller(whole)]


def _is_known(block: Mapping[str, object]) -> bool:
    """Whether a client can be expected to take it: a transcript may come from elsewhere."""
    kind, contents = block.get("type"), block.get("resource")
    texts = _TEXTS.get(kind) if isinstance(kind, str) else None
    if texts is None or not all(isinstance(block.get(name), str) for name in texts):
        return False
    if kind != "resource":
        return True
    parts = [contents.get(name) for name in ("uri", "text", "blob")] if isinstance(contents, dict) else [None]
    return isinstance(parts[0], str) and any(isinstance(part, str) for part in parts[1:])


def _smaller(block: Mapping[str, object]) -> dict[str, object]:
    contents = block.get("resource")
    if isinstance(contents, dict):
        uri, text = contents.get("uri"), contents.get("text")
        shorter = {"uri": uri, "text": cut(text) if isinstance(text, str) else ""}
        if isinstance(text, str) and is_within(shorter, _BLOCK_LIMIT):
            return {"type": "resource", "resource": shorter}
    kind = block.get("type")
    return {"type": "text", "text": f"[{kind} block of this prompt is too large to be shown again]"}


def _without_nulls(block: Mapping[str, object]) -> dict[str, object]:
    """Some clients refuse an optional value that is null. What is in `_meta` is not ours to change."""
    return {
        key: _without_nulls(value) if isinstance(value, dict) and key != "_meta" else value
        for key, value in block.items()
        if value is not None
    }
