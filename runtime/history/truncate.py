"""Cutting one tool result to size: its head and its tail stay. Knows no row and no limit of its own."""

import re
from dataclasses import dataclass

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
