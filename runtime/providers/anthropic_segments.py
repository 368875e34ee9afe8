"""Segments of rows as bytes of the Messages API, each row encoded once: pure. Knows no HTTP.

Messages of the API alternate between two roles, so neighbouring rows share one, across segments too. A
segment is therefore kept as its blocks with the borders between messages inside it; which border stands
between two segments, and where a cache breakpoint goes, is decided when they are joined. Neither changes a
kept byte: what was sent stays as it was.
"""

from collections.abc import Iterator, Sequence

from runtime.model import Segment
from runtime.providers import anthropic_blocks
from runtime.providers.encoding import EMPTY, dumps, is_blank
from runtime.rows import Row

CODEC = "anthropic-messages"
"""The key in `Segment.encoded`; what else is kept of a segment stands under keys that start with it."""
PLAIN, ENDS, SYSTEM = CODEC + "-plain", CODEC + "-ends", CODEC + "-system"
MARK = b',"cache_control":{"type":"ephemeral"}}'
"""Takes the place of a block's closing brace."""

_USER, _ASSISTANT = b"u", b"a"
_OPEN = {
    _USER: b'{"role":"user","content":[',
    _ASSISTANT: b'{"role":"assistant","content":[',
}
_BORDER = {role: b"]}," + head for role, head in _OPEN.items()}
_NOBODY = dumps(anthropic_blocks.text_block(EMPTY))


def speaks(segment: Segment) -> bool:
    """Whether the segment has anything for a message."""
    return bool(_ends(segment))


def has_calls(segment: Segment) -> bool:
    """Whether a call stands in the segment."""
    return b"c" in _ends(segment)


def encoded(segment: Segment, *, reasoning: bool = True) -> bytes:
    """The segment's blocks and borders, made on first use. Without reasoning: those blocks left out."""
    key = CODEC if reasoning or b"r" not in _ends(segment) else PLAIN
    body = segment.encoded.get(key)
    if body is None:
        body = segment.encoded[key] = b"".join(_pieces(segment.rows, key == CODEC))
    return body


def system_blocks(segments: Sequence[Segment]) -> bytes:
    """The blocks of all system rows."""
    return b",".join(filter(None, map(_system, segments)))


def joined(segments: Sequence[Segment], marked: frozenset[int], *, reasoning: bool = True) -> list[bytes]:
    """The list of messages in pieces: it begins with a user's, roles alternate, none is empty.

    marked: numbers of segments whose last block is a cache breakpoint.
    """
    out: list[bytes] = []
    last = b""
    for number, segment in enumerate(segments):
        ends = _ends(segment)
        if not ends:
            continue
        first, body = ends[:1], encoded(segment, reasoning=reasoning)
        if not last and first == _ASSISTANT:
            out += _OPEN[_USER], _NOBODY
            last = _USER
        out.append((b"," if last == first else _BORDER[first]) if last else _OPEN[first])
        out += [body[:-1], MARK] if number in marked else [body]
        last = ends[1:2]
    return [*out, b"]}"] if last else [_OPEN[_USER], _NOBODY, b"]}"]


def _ends(segment: Segment) -> bytes:
    """First role, last role, then c: has calls, r: has reasoning. Empty for rows without a message."""
    known = segment.encoded.get(ENDS)
    if known is None:
        known = segment.encoded[ENDS] = _made_ends(segment.rows)
    return known


def _made_ends(rows: Sequence[Row]) -> bytes:
    spoken = [row for row in rows if row.role != "system"]
    if not spoken:
        return b""
    calls = b"c" if any(row.tool_calls for row in spoken) else b""
    reasoning = b"r" if any(row.reasoning for row in spoken) else b""
    return _role(spoken[0]) + _role(spoken[-1]) + calls + reasoning


def _role(row: Row) -> bytes:
    return _ASSISTANT if row.role == "assistant" else _USER


def _pieces(rows: Sequence[Row], reasoning: bool) -> Iterator[bytes]:
    last = b""
    for row in rows:
        if row.role == "system":
            continue
        role = _role(row)
        if last:
            yield b"," if role == last else _BORDER[role]
        yield b",".join(map(dumps, anthropic_blocks.blocks(row, reasoning=reasoning)))
        last = role


def _system(segment: Segment) -> bytes:
    known = segment.encoded.get(SYSTEM)
    if known is None:
        texts = [row.content for row in segment.rows if row.role == "system" and not is_blank(row.content)]
        known = b",".join(dumps(anthropic_blocks.text_block(text)) for text in texts)
        segment.encoded[SYSTEM] = known
    return known
