"""A whole text file on the disk, decoded without loss, and its way back to bytes. Blocks on the disk.

For tools that change files: a text that cannot be given back as the bytes it came from is refused.
"""

import os
from dataclasses import dataclass

from runtime.errors import ToolError
from runtime.tools.decode import Encoding, detect
from runtime.tools.paths import shorten
from runtime.tools.roots import Place, explain, opened_file

MAX_CHANGED = 8 * 1024 * 1024
"""Largest file that is changed, bytes."""
PLAIN = Encoding("utf-8")


@dataclass(frozen=True, slots=True)
class WholeText:
    """A file as it was read: its text without the byte order mark, its encoding, its status."""

    text: str
    encoding: Encoding
    mark: bytes
    status: os.stat_result

    @property
    def is_plain(self) -> bool:
        """Whether it is UTF-8 without a mark, which every program writes back as it was."""
        return self.encoding.name == "utf-8" and not self.mark


def read_whole(place: Place) -> WholeText | None:
    """The file there; None when there is nothing. Raises ToolError: a folder, special, binary, damaged."""
    try:
        with opened_file(place) as descriptor:
            status = os.fstat(descriptor)
            data = _all_of(descriptor, status.st_size, place)
    except FileNotFoundError:
        return None
    encoding = detect(data)
    if encoding is None:
        raise ToolError(f"{shorten(place.shown)} is a binary file ({len(data):,} bytes); it is not changed")
    try:
        text = data[encoding.mark :].decode(encoding.name)
    except UnicodeDecodeError as error:
        raise ToolError(
            f"{shorten(place.shown)} holds bytes that are no text (at {error.start:,}); it is not changed"
        ) from None
    return WholeText(text, encoding, data[: encoding.mark], status)


def to_bytes(text: str, place: Place, like: WholeText | None) -> bytes:
    """The text in the encoding of the file that was there. Raises ToolError when that cannot hold it."""
    encoding, mark = (like.encoding, like.mark) if like else (PLAIN, b"")
    try:
        data = mark + text.encode(encoding.name)
    except UnicodeEncodeError as error:
        wrong = text[error.start].encode("unicode_escape").decode()
        raise ToolError(
            f"{shorten(place.shown)} is kept as {encoding.name}, which has no {wrong}; leave that out"
        ) from None
    if len(data) > MAX_CHANGED:
        raise ToolError(_too_large(place, len(data)))
    return data


def _all_of(descriptor: int, size: int, place: Place) -> bytes:
    if size > MAX_CHANGED:
        raise ToolError(_too_large(place, size))
    try:
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(MAX_CHANGED + 1)
    except OSError as error:
        raise ToolError(explain(place.shown, error)) from error


def _too_large(place: Place, size: int) -> str:
    return f"{shorten(place.shown)} would be or is too large ({size:,} bytes; at most {MAX_CHANGED:,})"
