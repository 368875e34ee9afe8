"""A range of lines out of text that comes in pieces, bounded. Pure. A line ends at `\\n` and nowhere else."""

from collections.abc import Iterable
from dataclasses import dataclass


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
