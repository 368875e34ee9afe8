"""The digest of a request: the same for the same rows, however they are cut into segments. Pure.

Rows of a segment never change, so theirs is made once and kept with it: a request costs 32 bytes a row.
"""

from collections.abc import Iterator
from hashlib import sha256

from runtime.model import ModelRequest, Segment
from runtime.rows import Row, ToolSpec

CODEC = "sha256"
"""Where a segment keeps the digests of its rows, beside the bytes of the adapters."""


def request_digest(request: ModelRequest) -> str:
    """sha256 over model, output limit, tools and rows, as hex."""
    made = sha256(_framed(request.model, str(request.max_output_tokens), *_tool_texts(request.tools)))
    for segment in request.segments:
        made.update(rows_digest(segment))
    return made.hexdigest()


def rows_digest(segment: Segment) -> bytes:
    """The digests of the segment's rows, one after the other."""
    known = segment.encoded.get(CODEC)
    if known is None:
        known = b"".join(sha256(_framed(*_row_texts(row))).digest() for row in segment.rows)
        segment.encoded[CODEC] = known
    return known


def text_digest(*texts: str) -> str:
    """sha256 of some texts in this order, as hex."""
    return sha256(_framed(*texts)).hexdigest()


def _tool_texts(tools: tuple[ToolSpec, ...]) -> Iterator[str]:
    for tool in tools:
        yield from (tool.name, tool.description, tool.parameters)


def _row_texts(row: Row) -> Iterator[str]:
    """All of a row that a provider may send, each part in its place."""
    yield from (row.role, row.content, row.tool_call_id or "", row.reasoning or "")
    for call in row.tool_calls:
        yield from ("call", call.id, call.name, call.arguments)
    for attachment in row.attachments:
        yield from ("attachment", attachment.kind, attachment.target)
    for image in row.images:
        yield from ("image", image.mime_type, image.data, image.uri)


def _framed(*texts: str) -> bytes:
    """The texts with their lengths before them, so that no two lists give the same bytes."""
    pieces = (text.encode("utf-8", "surrogatepass") for text in texts)
    return b"".join(b"%d:%b" % (len(piece), piece) for piece in pieces)
