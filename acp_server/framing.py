"""Bytes to lines, bounded. Knows neither JSON nor where the bytes come from.

Lines end with LF; a CR before it and blank lines are dropped. The result does not depend on how the
bytes were cut into pieces.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

MAX_LINE: Final = 64 * 1024 * 1024
"""Bytes a line may have, its LF not counted. The longest that known clients send is below this."""


class Oversized(NamedTuple):
    """A line longer than `limit` bytes. All of it is thrown away, up to the next LF."""

    limit: int


Line = bytes | Oversized


class LineSplitter:
    """Feed it what was read; it gives the lines that are complete by then."""

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._limit = limit
        # Pieces are joined once, when the line ends: a long line costs one copy, not one a read.
        self._pieces: list[bytes] = []
        self._length = 0
        self._skipping = False

    def feed(self, data: bytes | bytearray) -> list[Line]:
        """The lines that `data` completes, in order. Only `data` itself is searched for an end."""
        *ends, rest = bytes(data).split(b"\n")
        lines = [line for end in ends for line in self._end(end)]
        return lines + list(self._keep(rest))

    def finish(self) -> bytes:
        """What came after the last LF (empty when nothing did): the end of input."""
        rest = b"".join(self._pieces)
        self._reset()
        return rest.rstrip(b"\r")

    def _keep(self, piece: bytes) -> Iterator[Oversized]:
        # Told as soon as it is certain: a line that never ends is reported as well.
        if self._skipping or not piece:
            return
        self._pieces.append(piece)
        self._length += len(piece)
        if self._length > self._limit:
            self._reset()
            self._skipping = True
            yield Oversized(self._limit)

    def _end(self, piece: bytes) -> Iterator[Line]:
        yield from self._keep(piece)
        line = b"".join(self._pieces) if len(self._pieces) != 1 else self._pieces[0]
        self._reset()
        if line.strip(b" \t\r"):
            yield line.removesuffix(b"\r")

    def _reset(self) -> None:
        self._pieces = []
        self._length = 0
        self._skipping = False
