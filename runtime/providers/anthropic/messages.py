"""Rows as content blocks of the Messages API, and segments as bytes, each row encoded once. Pure; no HTTP.

System rows are blocks of the request's own `system` list. Results of tools are blocks of a user message.
Messages alternate between two roles, so neighbouring rows share one, across segments too. A segment is
therefore kept as its blocks with the borders between messages inside it; which border stands between two
segments, and where a cache breakpoint goes, is decided when they are joined. Neither changes a kept byte:
what was sent stays as it was.
"""

from collections.abc import Iterator, Sequence

from runtime.providers.http.encoding import (
    EMPTY,
    data_uri,
    dumps,
    filled,
    fitting_id,
    fitting_name,
    is_blank,
    raw,
    safe_arguments,
    unsent_image,
)
from runtime.providers.http.reasoning import Piece, pieces
from runtime.values.model import Segment
from runtime.values.rows import Image, Row, ToolCall

Block = dict[str, object]
REASONING = frozenset({"thinking", "redacted_thinking"})
"""Kinds of blocks that the API wants back as they came."""
IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""Any other one is refused, and would be with every later request."""


def blocks(row: Row, *, reasoning: bool = True) -> Sequence[Block]:
    """The row's blocks, one at least. reasoning: put what the row carries of it into its place."""
    if row.role == "assistant":
        kinds = REASONING if reasoning else frozenset[str]()
        made = [_block(piece) for piece in pieces(row, kinds) if not _says_nothing(piece)]
        return made or [text_block(row.content)]
    if row.role == "tool":
        ident = fitting_id(row.tool_call_id or "")
        return [{"type": "tool_result", "tool_use_id": ident, "content": filled(row.content)}]
    images = [_image(image) for image in row.images]
    return [*([] if images and is_blank(row.content) else [text_block(row.content)]), *images]


def text_block(text: str) -> Block:
    """A block of text."""
    return {"type": "text", "text": filled(text)}


def _says_nothing(piece: Piece) -> bool:
    return isinstance(piece, str) and is_blank(piece)


def _block(piece: Piece) -> Block:
    if isinstance(piece, str):
        return text_block(piece)
    return _call(piece) if isinstance(piece, ToolCall) else piece


def _call(call: ToolCall) -> Block:
    return {
        "type": "tool_use",
        "id": fitting_id(call.id),
        "name": fitting_name(call.name),
        "input": raw(safe_arguments(call.arguments)),
    }


def _image(image: Image) -> Block:
    inline = (image.mime_type, image.data) if image.data else data_uri(image.uri)
    if inline and inline[0] in IMAGE_TYPES:
        source = {"type": "base64", "media_type": inline[0], "data": inline[1]}
        return {"type": "image", "source": source}
    if not inline and image.uri.startswith(("http://", "https://")):
        return {"type": "image", "source": {"type": "url", "url": image.uri}}
    return text_block(unsent_image(inline[0] if inline else image.uri))


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
_NOBODY = dumps(text_block(EMPTY))


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
        yield b",".join(map(dumps, blocks(row, reasoning=reasoning)))
        last = role


def _system(segment: Segment) -> bytes:
    known = segment.encoded.get(SYSTEM)
    if known is None:
        texts = [row.content for row in segment.rows if row.role == "system" and not is_blank(row.content)]
        known = b",".join(dumps(text_block(text)) for text in texts)
        segment.encoded[SYSTEM] = known
    return known
