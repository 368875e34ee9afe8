"""A prompt's content blocks as the one text that the model reads, and `file:` URIs as paths, both ways.

Pictures are no part of the text; `runtime.transcript.restore` takes them out of the same blocks. URIs are
read alike on every host: POSIX, Windows and UNC. Knows no session, reads no file, asks no file system.
"""

import base64
import binascii
import re
from collections.abc import Sequence
from urllib.parse import quote, unquote, urlsplit

from runtime.transcript.restore import picture_type
from runtime.values.errors import InvalidParams
from schemas.acp.content import (
    BlobContents,
    ContentBlock,
    ImageBlock,
    ResourceBlock,
    ResourceLinkBlock,
    TextBlock,
    TextContents,
)

_DRIVE_PATH = re.compile(r"[A-Za-z]:[\\/]")
_DRIVE_IN_URI = re.compile(r"/[A-Za-z]:(/|$)")


def path_from_uri(uri: str) -> str | None:
    """The path that a `file:` URI means, in the form of the system it is from; None for any other URI.

    `file:///C:/x` and `file:///c%3A/x` give `C:\\x` and `c:\\x`, `file://server/share` gives
    `\\\\server\\share`. A fragment (a line range, say) is left out.
    """
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    path = unquote(parts.path)
    if parts.scheme != "file" or not path.startswith("/") or "\0" in path:
        return None
    if parts.netloc not in ("", "localhost"):
        return "\\\\" + unquote(parts.netloc) + path.replace("/", "\\")
    if _DRIVE_IN_URI.match(path):
        return (path[1:] if len(path) > 3 else path[1:] + "/").replace("/", "\\")
    return path


def uri_from_path(path: str) -> str:
    """The `file:` URI of an absolute path. Raises ValueError for a relative one."""
    if path.startswith("\\\\"):
        return "file:" + quote(path.replace("\\", "/"))
    if _DRIVE_PATH.match(path):
        return "file:///" + path[:2] + quote(path[2:].replace("\\", "/"))
    if path.startswith("/"):
        # A second slash at the front would read as a host name.
        return "file://" + quote("/" + path.lstrip("/"))
    raise ValueError("not an absolute path")


LARGEST_PICTURE = 20 * 1024 * 1024
"""Characters of base64. Providers take less, and say how much."""
_TEXTS = re.compile(
    r"text/|application/(json|xml|toml|yaml|x-yaml|javascript|x-sh)\b|[^/]+/[^;]+\+(json|xml)\b"
)


def prompt_text(blocks: Sequence[ContentBlock]) -> str:
    """The blocks as one user text, in order. Raises InvalidParams for sound, and for a broken picture.

    Text goes in as it is, a link as a one-line reference, an embedded text in a fence under its URI, for a
    picture a line only if no model could see it.
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
        case ImageBlock():
            return _picture(index, block)
        case _:
            # Only what `initialize` offered may arrive, and it offers no sound.
            raise InvalidParams(f"Invalid params: prompt[{index}]: {block.type} content is not supported")


def _link(block: ResourceLinkBlock) -> str:
    # Tools take paths, so a file's path stands beside the URI, decoded.
    path = path_from_uri(block.uri)
    place = f", file {_one_line(path)}" if path else ""
    return f"[resource: {_one_line(block.title or block.name)}{place}]({_one_line(block.uri)})"


def _fenced(contents: TextContents) -> str:
    return fenced(_one_line(contents.uri), contents.text)


def fenced(name: str, text: str) -> str:
    """A text between fences that it cannot close, under its name."""
    runs = re.findall(r"`{3,}", text)
    fence = "`" * max((len(run) + 1 for run in runs), default=3)
    end = "" if text.endswith("\n") else "\n"
    return f"\nContents of {name}:\n{fence}\n{text}{end}{fence}\n"


def _picture(index: int, block: ImageBlock) -> str:
    if len(block.data) > LARGEST_PICTURE:
        raise InvalidParams(f"Invalid params: prompt[{index}].data is larger than {LARGEST_PICTURE} bytes")
    if _decoded(block.data) is None:
        raise InvalidParams(f"Invalid params: prompt[{index}].data is not valid base64")
    if picture_type(block.data):
        return ""
    return f"[image, {_one_line(block.mime_type)}: left out, models see only PNG, JPEG, GIF and WebP]"


def _decoded(data: str) -> bytes | None:
    try:
        return base64.b64decode(data, validate=True) or None
    except (binascii.Error, ValueError):
        return None


def _blob(contents: BlobContents) -> str:
    if picture_type(contents.blob) and _decoded(contents.blob):
        return f"[embedded image]({_one_line(contents.uri)})"
    if _TEXTS.match(contents.mime_type or "") and (data := _decoded(contents.blob)):
        return fenced(_one_line(contents.uri), data.decode("utf-8", "replace"))
    kind = _one_line(contents.mime_type or "unknown type")
    size = len(contents.blob) * 3 // 4
    return f"\n[binary resource, {kind}, about {size} bytes, contents not shown]({_one_line(contents.uri)})\n"


def _one_line(value: str) -> str:
    """No line break or control character, so that a name cannot pose as a line of the prompt."""
    return " ".join("".join(c if c.isprintable() else " " for c in value).split())
