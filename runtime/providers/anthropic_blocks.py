"""What each row becomes in the Messages API: content blocks under one of two roles. Pure; knows no request.

System rows are blocks of the request's own `system` list. Results of tools are blocks of a user message.
"""

from collections.abc import Sequence

from runtime.providers.encoding import (
    data_uri,
    filled,
    fitting_id,
    fitting_name,
    is_blank,
    raw,
    safe_arguments,
    unsent_image,
)
from runtime.providers.layout import Piece, pieces
from runtime.rows import Image, Row, ToolCall

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
