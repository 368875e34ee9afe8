"""The digest of a request: the same for the same rows, however they are cut into segments. Pure.

Rows of a segment never change, so theirs is made once and kept with it: a request costs 32 bytes a row.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from operator import is_

from runtime.values.model import ModelRequest, Segment
from runtime.values.rows import Row, ToolSpec

CODEC = "sha256"
"""Where a segment keeps the digests of its rows, beside the bytes of the adapters."""


class RequestDigests:
    """Digests of a session's requests, one after the other. What two begin with alike is hashed once."""

    def __init__(self) -> None:
        self._head: tuple[str, int | None, tuple[ToolSpec, ...]] | None = None
        self._segments: tuple[Segment, ...] = ()
        self._made = sha256()

    def digest(self, request: ModelRequest) -> str:
        """sha256 over model, output limit, tools and rows, as hex."""
        head = request.model, request.max_output_tokens, request.tools
        known = shared_start(self._segments, request.segments) if head == self._head else 0
        if head != self._head or known < len(self._segments):
            model, limit, tools = self._head = head
            self._made, known = sha256(_framed(model, str(limit), *_tool_texts(tools))), 0
        for segment in request.segments[known:]:
            self._made.update(rows_digest(segment))
        self._segments = request.segments
        return self._made.hexdigest()


def request_digest(request: ModelRequest) -> str:
    """The digest of one request by itself."""
    return RequestDigests().digest(request)


def shared_start(some: Sequence[Segment], others: Sequence[Segment]) -> int:
    """How many segments both begin with, the very same ones."""
    alike = list(map(is_, some, others))
    return alike.index(False) if False in alike else len(alike)


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
