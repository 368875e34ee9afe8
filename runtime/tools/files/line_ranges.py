"""A text file on the disk: what it is, and a range of its lines, bounded. Blocks; knows no tool.

A line ends at a line feed and nowhere else.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from time import monotonic

from runtime.tools.files.encoding import Decoder, Encoding, detect
from runtime.tools.sandbox.paths import shorten
from runtime.tools.sandbox.roots import Place, explain, opened_file
from runtime.values.errors import ToolError
from runtime.values.seen_files import Digest, Stamp, digest


@dataclass(frozen=True, slots=True)
class Window:
    """What was taken.

    text: the lines, their endings kept. first, last: 1-based; last < first when there were none.
    total: lines in all, None when the rest was not counted. more: something follows.
    cut: characters of the last line were left out since it alone is longer than the cap.
    """

    text: str
    first: int
    last: int
    total: int | None
    more: bool
    cut: bool = False


def take(chunks: Iterable[str], *, first: int, count: int | None, cap: int, count_rest: bool) -> Window:
    """`count` lines from `first` on (None: to the end), at most `cap` characters, whole lines if possible.

    count_rest: read on to the end, to tell how many lines there are.
    """
    taker = _Taker(first - 1, count, cap)
    for chunk in chunks:
        taker.feed(chunk)
        if taker.full and taker.more and not count_rest:
            return taker.window(first, ended=False)
    return taker.window(first, ended=True)


class _Taker:
    def __init__(self, skip: int, count: int | None, cap: int) -> None:
        self.full = count == 0
        self.more = False
        self._skip = skip
        self._left = count
        self._cap = cap
        self._kept: list[str] = []
        self._size = 0
        self._ends = 0
        self._open = False

    def feed(self, chunk: str) -> None:
        if not chunk:
            return
        seen = chunk.count("\n")
        ends_before, self._ends = self._ends, self._ends + seen
        self._open = not chunk.endswith("\n")
        rest = chunk
        if ends_before < self._skip:
            if self._ends < self._skip:
                return
            rest = chunk.split("\n", self._skip - ends_before)[-1]
        if self.full:
            self.more = self.more or bool(rest)
        elif rest:
            self._keep(rest)

    def _keep(self, text: str) -> None:
        if self._left is not None:
            pieces = text.split("\n", self._left)
            if len(pieces) > self._left:
                self.full = True
                self.more = bool(pieces[-1])
                text = "\n".join(pieces[:-1]) + "\n"
            self._left -= len(pieces) - 1
        room = self._cap - self._size
        if len(text) > room:
            text = text[:room]
            self.full = self.more = True
        self._kept.append(text)
        self._size += len(text)

    def window(self, first: int, *, ended: bool) -> Window:
        text = "".join(self._kept)
        total = self._ends + self._open if ended else None
        cut = False
        if self._size >= self._cap and self.more and not text.endswith("\n"):
            whole = text.rfind("\n") + 1
            text, cut = (text[:whole], False) if whole else (text, True)
        lines = text.count("\n") + (not text.endswith("\n") and bool(text))
        return Window(text, first, first + lines - 1, total, self.more, cut)


MAX_TEXT = 2 * 1024 * 1024
"""Most text given in one call, characters."""

_SAMPLE = 64 * 1024
_CHUNK = 1024 * 1024
_COUNTED = 32 * 1024 * 1024
"""Up to this size, bytes, a file is read to its end to tell how many lines it has."""
SECONDS = 20.0
"""The longest search for a line far inside a file."""


@dataclass(frozen=True, slots=True)
class TextFile:
    """A text file as it was when looked at. size: bytes. sample: its beginning, all of it when short."""

    size: int
    mtime_ns: int
    encoding: Encoding
    sample: bytes

    @property
    def is_whole(self) -> bool:
        """Whether the sample is the whole file."""
        return len(self.sample) == self.size


@dataclass(frozen=True, slots=True)
class Reading:
    """A range of lines, what must be said about it, and what the whole file was like."""

    window: Window
    notes: tuple[str, ...]
    stamp: Stamp


def look(place: Place) -> TextFile | None:
    """What is there; None when nothing. Raises ToolError for a folder, a special or a binary file."""
    try:
        with opened_file(place) as descriptor:
            sample = _read(descriptor, _SAMPLE, place)
            status = os.fstat(descriptor)
    except FileNotFoundError:
        return None
    encoding = detect(sample)
    if encoding is None:
        size = f"{status.st_size:,} bytes"
        raise ToolError(f"{shorten(place.shown)} is a binary file ({size}); it is not shown")
    return TextFile(status.st_size, status.st_mtime_ns, encoding, sample)


def read(place: Place, file: TextFile, first: int, count: int | None, stopped: Callable[[], bool]) -> Reading:
    """Lines from `first` on (1-based), at most `count` and MAX_TEXT characters. Streams.

    Raises ToolError, also when the lines are too far inside; FileNotFoundError when it went away.
    """
    decoder, made = Decoder(file.encoding), Digest()
    with opened_file(place) as descriptor:
        before = os.fstat(descriptor)
        to_the_end = before.st_size <= _COUNTED
        window = take(
            _digested(_decoded(descriptor, decoder, file, place, stopped), made),
            first=first,
            count=count,
            cap=MAX_TEXT,
            count_rest=to_the_end,
        )
        after = os.fstat(descriptor)
    notes = _notes(file, decoder, window)
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        notes.append("the file changed while it was read")
    stamp = Stamp(made.value() if to_the_end else "", after.st_size, after.st_mtime_ns)
    return Reading(window, tuple(notes), stamp)


def read_sample(file: TextFile, first: int, count: int | None) -> Reading:
    """As `read`, of a file whose sample is all of it: the disk is not asked again."""
    decoder = Decoder(file.encoding)
    text = decoder.feed(file.sample[file.encoding.mark :], final=True)
    window = take((text,), first=first, count=count, cap=MAX_TEXT, count_rest=True)
    stamp = Stamp(digest(text), file.size, file.mtime_ns)
    return Reading(window, tuple(_notes(file, decoder, window)), stamp)


def _notes(file: TextFile, decoder: Decoder, window: Window) -> list[str]:
    notes = [file.encoding.note] if file.encoding.note else []
    if decoder.damaged and "\ufffd" in window.text:
        notes.append("some bytes are not valid text and stand as \ufffd")
    return notes


def _digested(pieces: Iterator[str], made: Digest) -> Iterator[str]:
    for piece in pieces:
        made.feed(piece)
        yield piece


def _decoded(
    descriptor: int, decoder: Decoder, file: TextFile, place: Place, stopped: Callable[[], bool]
) -> Iterator[str]:
    os.lseek(descriptor, file.encoding.mark, os.SEEK_SET)
    # A file that grows as fast as it is read has no end: what was there at first is enough.
    left = max(os.fstat(descriptor).st_size, _COUNTED)
    until = monotonic() + SECONDS
    while left > 0 and (data := _read(descriptor, _CHUNK, place)):
        if stopped():
            return
        if monotonic() > until:
            raise ToolError(f"{shorten(place.shown)} is too large to find lines so far inside it; search it")
        left -= len(data)
        yield decoder.feed(data)
    yield decoder.feed(b"", final=True)


def _read(descriptor: int, size: int, place: Place) -> bytes:
    try:
        return os.read(descriptor, size)
    except OSError as error:
        raise ToolError(explain(place.shown, error)) from error
