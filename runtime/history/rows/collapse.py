"""Older turns without their tool traffic, for a request only, and one tool result cut to its head and tail.

Changes no stored row; knows no limit of its own.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from runtime.history.rows.boundaries import (
    boundaries,
    is_tool_result_carrier,
    opens_retention_turn,
    prefix_length,
)
from runtime.history.rows.calls_in_text import prompt_mode_calls
from runtime.values.rows import Row

DEFAULT_KEEP_TURNS = 2


def summary_row(calls: int) -> Row:
    """The row that stands for an exchange that no reply closed."""
    return Row("assistant", f"[Tool exchange: {calls} tool call(s) — results collapsed]")


def calls_issued(row: Row, callable_tools: Collection[str]) -> int:
    """How many calls the row makes, native or in text; 0 unless it names a tool that can be run."""
    if row.role != "assistant":
        return 0
    names = [call.name for call in row.tool_calls] or [call.name for call in prompt_mode_calls(row.content)]
    return len(names) if any(name in callable_tools for name in names) else 0


def collapse_turn(rows: Sequence[Row], callable_tools: Collection[str]) -> list[Row]:
    """One older turn as its prompt, its system rows, and its closing reply or a summary row."""
    prompt, rest = rows[0], [row for row in rows[1:] if row.role != "system"]
    head = [prompt, *(row for row in rows[1:] if row.role == "system")]
    if not rest:
        return head
    last = rest[-1]
    if last.role == "assistant" and not calls_issued(last, callable_tools):
        return [*head, last]
    count = sum(calls_issued(row, callable_tools) for row in rest)
    count = count or sum(1 for row in rest if is_tool_result_carrier(row))
    return [*head, summary_row(max(count, 1))]


def collapse_tool_context(
    rows: Sequence[Row],
    keep_tool_context_turns: int = DEFAULT_KEEP_TURNS,
    callable_tools: Collection[str] = (),
    crumb_present: bool = False,
) -> list[Row]:
    """The request copy: the newest turn and `keep_tool_context_turns` before it whole, older ones short."""
    prefix = prefix_length(rows, crumb_present)
    starts = boundaries(rows, prefix, opens_retention_turn)
    older = max(len(starts) - 1 - max(keep_tool_context_turns, 0), 0)
    if not older:
        return list(rows)
    out = list(rows[: starts[0]])
    for start, end in pairwise(starts[: older + 1]):
        out += collapse_turn(rows[start:end], callable_tools)
    return out + list(rows[starts[older] :])


_MARKER = re.compile(rb"\[IMAGE:[^\]]*\]")
_MARKER_OPEN = b"[IMAGE:"


@dataclass(frozen=True, slots=True)
class Truncated:
    """The text to record and how many bytes of the original are not in it (0: untouched)."""

    text: str
    elided_bytes: int


def truncate_tool_result(text: str, max_chars: int) -> Truncated:
    """Keep about two thirds of `max_chars` bytes at the head and the rest at the tail; 0 or less is off.

    A cut never splits a character or a closed image marker: it moves outward. The line that says how
    much is gone is not counted in the limit. Head and tail cannot meet: what is cut only grows.
    """
    raw = text.encode("utf-8", "surrogatepass")
    if max_chars <= 0 or len(raw) <= max_chars:
        return Truncated(text, 0)
    head = 2 * max_chars // 3
    head, tail = _outward(raw, head, len(raw) - (max_chars - head))
    elided = tail - head
    line = f"\n\n[... {elided} characters truncated ...]\n\n"
    return Truncated(_decode(raw[:head]) + line + _decode(raw[tail:]), elided)


def _outward(raw: bytes, head: int, tail: int) -> tuple[int, int]:
    while head > 0 and _inside_character(raw, head):
        head -= 1
    while tail < len(raw) and _inside_character(raw, tail):
        tail += 1
    if _MARKER_OPEN not in raw:
        return head, tail
    for match in _MARKER.finditer(raw):
        start, end = match.span()
        if start < head < end:
            head = start
        if start < tail < end:
            tail = end
    return head, tail


def _inside_character(raw: bytes, index: int) -> bool:
    return raw[index] & 0xC0 == 0x80


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")
