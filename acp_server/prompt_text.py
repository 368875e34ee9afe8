"""A prompt's content blocks as the one text that the model reads. Knows no session and reads no file."""

import re
from collections.abc import Sequence

from acp_server.file_uri import path_from_uri
from runtime.errors import InvalidParams
from schemas.acp.content import (
    BlobContents,
    ContentBlock,
    ResourceBlock,
    ResourceLinkBlock,
    TextBlock,
    TextContents,
)


def prompt_text(blocks: Sequence[ContentBlock]) -> str:
    """The blocks as one user text, in order. Raises InvalidParams for images and sound.

    Text goes in as it is, a link as a one-line reference, an embedded text in a fence under its URI.
    Two blocks meet as they are if there is white space where they meet, else on a new line.
    """
    text = ""
    for index, block in enumerate(blocks):
        piece = _piece(index, block)
        apart = not text or not piece or text[-1].isspace() or piece[0].isspace()
        text += piece if apart else "\n" + piece
    return text


def _piece(index: int, block: ContentBlock) -> str:
    match block:
        case TextBlock():
            return block.text
        case ResourceLinkBlock():
            return _link(block)
        case ResourceBlock(resource=TextContents() as contents):
            return _fenced(contents)
        case ResourceBlock(resource=BlobContents() as contents):
            return _blob(contents)
        case _:
            # Only what `initialize` offered may arrive, and it offers neither images nor sound.
            raise InvalidParams(f"Invalid params: prompt[{index}]: {block.type} content is not supported")


def _link(block: ResourceLinkBlock) -> str:
    # Tools take paths, so a file's path stands beside the URI, decoded.
    path = path_from_uri(block.uri)
    place = f", file {_one_line(path)}" if path else ""
    return f"[resource: {_one_line(block.title or block.name)}{place}]({_one_line(block.uri)})"


def _fenced(contents: TextContents) -> str:
    runs = re.findall(r"`{3,}", contents.text)
    fence = "`" * max((len(run) + 1 for run in runs), default=3)
    end = "" if contents.text.endswith("\n") else "\n"
    return f"\nContents of {_one_line(contents.uri)}:\n{fence}\n{contents.text}{end}{fence}\n"


def _blob(contents: BlobContents) -> str:
    kind = _one_line(contents.mime_type or "unknown type")
    size = len(contents.blob) * 3 // 4
    return f"\n[binary resource, {kind}, about {size} bytes, contents not shown]({_one_line(contents.uri)})\n"


def _one_line(value: str) -> str:
    """No line break or control character, so that a name cannot pose as a line of the prompt."""
    return " ".join("".join(c if c.isprintable() else " " for c in value).split())
