"""Bytes to text: which encoding, or binary; and whole text files, decoded without loss and made bytes again.

For tools that change files: a text that cannot be given back as the bytes it came from is refused. Knows no
tool.
"""

import codecs
import os
from dataclasses import dataclass

from runtime.tools.sandbox.paths import shorten
from runtime.tools.sandbox.roots import Place, explain, opened_file
from runtime.values.errors import ToolError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8", "UTF-8 with a byte order mark"),
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16 (little endian)"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16 (big endian)"),
)
# Text holds these below the space: tab, line feed, form feed, return, backspace, bell, escape.
_CONTROLS = bytes(sorted(set(range(32)) - set(b"\t\n\f\r\b\a\x1b")))
_CONTROL_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Encoding:
    """How to decode a file. mark: bytes of its byte order mark. note: for the model, '' for plain UTF-8."""

    name: str
    mark: int = 0
    note: str = ""


def detect(sample: bytes) -> Encoding | None:
    """The encoding of a file that begins with `sample`; None when it is binary."""
    for mark, name, title in _MARKS:
        if sample.startswith(mark):
            return Encoding(name, len(mark), f"decoded as {title}")
    if b"\0" in sample or _mostly_control(sample):
        return None
    if _is_utf8(sample):
        return Encoding("utf-8")
    return Encoding("cp1252", 0, "not UTF-8: decoded as Windows-1252, some characters may be wrong")


class Decoder:
    """Decodes piece by piece. Bytes that do not fit become U+FFFD, and `damaged` says that it happened."""

    def __init__(self, encoding: Encoding) -> None:
        self._decoder = codecs.getincrementaldecoder(encoding.name)("strict")
        self.damaged = False

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """The text of this piece. A character cut at its end comes with the next one."""
        try:
            text = self._decoder.decode(data, final)
        except UnicodeDecodeError:
            # The failed call kept nothing, so the same bytes can be given once more.
            self._decoder.errors = "replace"
            self.damaged = True
            text = self._decoder.decode(data, final)
        if "\0" in text:
            self.damaged = True
            text = text.replace("\0", "\ufffd")
        return text


def _is_utf8(sample: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(sample, False)
    except UnicodeDecodeError:
        return False
    return True


def _mostly_control(sample: bytes) -> bool:
    looked_at = sample[:4096]
    controls = len(looked_at) - len(looked_at.translate(None, delete=_CONTROLS))
    return controls > _CONTROL_SHARE * len(looked_at)


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


def like(text: str, old: str) -> str:
    """`text` with the line endings of `old`, where those are all CRLF and the text has none."""
    uniform = "\r\n" in old and "\n" not in old.replace("\r\n", "")
    return text.replace("\n", "\r\n") if uniform and "\r\n" not in text else text


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
