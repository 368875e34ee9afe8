"""Bytes to text: which encoding, or binary. Pure."""

import codecs
from dataclasses import dataclass

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
