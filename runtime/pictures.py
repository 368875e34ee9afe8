"""The pictures of a prompt, out of its content blocks as they are stored. Pure; decodes no picture.

The same blocks always give the same pictures: a session that is loaded sends what the living one sent.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from runtime.history.boundaries import is_tool_result_carrier
from runtime.rows import Image, Row

_MAGIC = (
    ("image/png", b"\x89PNG\r\n\x1a\n"),
    ("image/jpeg", b"\xff\xd8\xff"),
    ("image/gif", b"GIF8"),
)


def picture_type(data: str) -> str:
    """The MIME type by the first bytes, whatever the sender calls it; '' for what models do not take.

    data: base64; what is none is no picture.
    """
    try:
        head = base64.b64decode(data, validate=True)[:16]
    except (binascii.Error, ValueError):
        return ""
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for kind, magic in _MAGIC if head.startswith(magic)), "")


def pictures(blocks: Sequence[Mapping[str, object]]) -> tuple[Image, ...]:
    """The pictures that a model can be sent, in order: image blocks, and embedded resources that are one."""
    found = (Image(picture_type(data), data, uri) for data, uri in _encoded(blocks))
    return tuple(image for image in found if image.mime_type)


def prompt_row(text: str, blocks: Sequence[Mapping[str, object]]) -> Row:
    """The row that a prompt is for the model."""
    row = Row("user", text, images=pictures(blocks))
    # One that goes on with a broken turn reads like results, and may not be shortened like them.
    return replace(row, origin="user") if is_tool_result_carrier(row) else row


def _encoded(blocks: Sequence[Mapping[str, object]]) -> Iterator[tuple[str, str]]:
    for block in blocks:
        if block.get("type") == "image":
            yield _text(block, "data"), _text(block, "uri")
        elif block.get("type") == "resource":
            contents = block.get("resource")
            inside = contents if isinstance(contents, Mapping) else {}
            yield _text(inside, "blob"), _text(inside, "uri")


def _text(block: Mapping[str, object], key: str) -> str:
    value = block.get(key)
    return value if isinstance(value, str) else ""
