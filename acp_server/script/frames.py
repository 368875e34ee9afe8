"""What came from the agent: lines made into frames, and the queue in which they wait. Knows no process."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import trio

MAX_LINE = 1024 * 1024 * 1024
MAX_WAITING = 2 * MAX_LINE
"""Bytes that may wait unread before the agent is taken to have run wild."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A line of JSON. size: bytes."""

    value: object
    size: int


@dataclass(frozen=True, slots=True)
class Stray:
    """A line that is no JSON, or more than we take: a fault of the agent. text: the beginning of it."""

    text: str
    problem: str


def read_line(line: bytes) -> Frame | Stray:
    """The frame of a line, strictly: UTF-8 without a mark, one JSON value, no NaN."""
    try:
        text = line.decode()
        return Frame(json.loads(text, parse_constant=_refuse), len(line))
    except UnicodeDecodeError:
        problem = "it is not UTF-8"
    except RecursionError:
        problem = "it is nested too deeply"
    except ValueError as error:
        problem = str(error)
    return Stray(line[:400].decode("utf-8", "replace"), problem)


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


class Splitter:
    """Bytes to lines. Blank lines are left out, as a client would."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that this piece completes."""
        *ended, rest = data.split(b"\n")
        for line in ended:
            whole = b"".join((*self._pieces, line))
            self._pieces, self._size = [], 0
            if whole.strip():
                yield whole
        if rest:
            self._pieces.append(rest)
            self._size += len(rest)

    def rest(self) -> bytes:
        """What stands behind the last newline; it is forgotten."""
        rest, self._pieces, self._size = b"".join(self._pieces), [], 0
        return rest

    @property
    def waiting(self) -> int:
        """Bytes held."""
        return self._size


class Inbox:
    """Frames that wait to be looked at. After `end` there come no more."""

    def __init__(self) -> None:
        self._items: list[Frame | Stray] = []
        self._taken = 0
        self._changed = trio.Event()
        self.size = 0
        self.ended = False

    def put(self, item: Frame | Stray) -> None:
        """Add what came."""
        self._items.append(item)
        self.size += item.size if isinstance(item, Frame) else len(item.text)
        self._wake()

    def end(self) -> None:
        """The agent's stdout is at its end."""
        self.ended = True
        self._wake()

    async def peek(self, ahead: int = 0) -> Frame | Stray | None:
        """What comes next, or `ahead` frames later; left in its place. None when there will be none."""
        while self._taken + ahead >= len(self._items):
            if self.ended:
                return None
            await self._changed.wait()
        await trio.lowlevel.checkpoint()
        return self._items[self._taken + ahead]

    def take(self) -> None:
        """Take out what `peek` gave."""
        item = self._items[self._taken]
        self.size -= item.size if isinstance(item, Frame) else len(item.text)
        self._taken += 1
        # Now and then the space in front is given back, not each time: that would cost a move of all.
        if self._taken > 1000:
            del self._items[: self._taken]
            self._taken = 0

    def waiting(self) -> list[Frame | Stray]:
        """All that was not taken."""
        return self._items[self._taken :]

    def _wake(self) -> None:
        changed, self._changed = self._changed, trio.Event()
        changed.set()
