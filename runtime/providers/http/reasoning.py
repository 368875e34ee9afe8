"""Reasoning that a provider wants back, and where in the reply it stood: pure. Knows no API.

The payload of a `ReasoningPart` is a JSON list in the reply's order: the provider's own objects as they
came, and between them marks for what the runtime keeps itself, {"type": "text", "chars": N} for the next N
characters of the text and {"type": "call"} for the next call.
"""

from collections.abc import Collection, Sequence

import orjson

from runtime.providers.http.encoding import json_text
from runtime.values.rows import Row, ToolCall
from runtime.values.texts import mended

Opaque = dict[str, object]
Piece = str | ToolCall | Opaque
"""Text, a call, or an object of the provider's."""


def text_mark(text: str) -> Opaque:
    """Stands for this text."""
    return {"type": "text", "chars": len(mended(text))}


def call_mark() -> Opaque:
    """Stands for a call."""
    return {"type": "call"}


def payload(items: list[Opaque], kinds: Collection[object]) -> str:
    """The list as JSON; '' when none of its objects is of these kinds."""
    if not any(item.get("type") in kinds for item in items):
        return ""
    return json_text(items)


def thought_payload(member: str, thought: str) -> str:
    """A reply's whole thought, which goes back as that member of its message; '' for none."""
    kind = _thought_kind(member)
    return payload([{"type": kind, member: thought}] if thought else [], {kind})


def thought_of(row: Row, member: str) -> Opaque:
    """The thought that was kept, as that member of the row's message; empty when none was."""
    kept = next((piece for piece in pieces(row, {_thought_kind(member)}) if isinstance(piece, dict)), {})
    return {member: kept[member]} if member in kept else {}


def _thought_kind(member: str) -> str:
    # Another API's blocks of thought may be called like the member, and want more than its text.
    return f"message.{member}"


def pieces(row: Row, kinds: Collection[object]) -> list[Piece]:
    """An assistant row in the order in which it was said, with the provider's objects of these kinds.

    A row that is no longer as it was received gets them first, then its text, then its calls.
    """
    marks = _marks(row.reasoning)
    kept = [mark for mark in marks if mark.get("type") in kinds]
    if not kept:
        return [row.content, *row.tool_calls]
    return _in_place(row, marks, kinds) or [*kept, row.content, *row.tool_calls]


def _in_place(row: Row, marks: Sequence[Opaque], kinds: Collection[object]) -> list[Piece]:
    made: list[Piece] = []
    start, calls = 0, list(row.tool_calls)
    for mark in marks:
        kind, chars = mark.get("type"), mark.get("chars")
        if kind == "text" and isinstance(chars, int):
            made.append(row.content[start : start + chars])
            start += chars
        elif kind == "call" and calls:
            made.append(calls.pop(0))
        elif kind in kinds:
            made.append(mark)
        else:
            return []
    return made if start == len(row.content) and not calls else []


def _marks(reasoning: str | None) -> list[Opaque]:
    try:
        value: object = orjson.loads(reasoning or "[]")
    except orjson.JSONDecodeError:
        return []
    return [mark for mark in value if isinstance(mark, dict)] if isinstance(value, list) else []
