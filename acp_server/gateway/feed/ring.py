"""The newest events within a bound, and one who reads them: a place in the ring, and which are wanted.

Knows no feed and no socket.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import NamedTuple

import trio


class Told(NamedTuple):
    """An event as it is told. number: 1, 2, 3, … in one feed. stream: the frame as a server-sent event."""

    number: int
    event_id: str
    session_id: str
    type: str
    stream: bytes

    @property
    def json(self) -> bytes:
        """The frame alone."""
        return self.stream[self.stream.index(_DATA) + len(_DATA) : -2]


_DATA = b"data: "


def told(number: int, event_id: str, session_id: str, kind: str, json: bytes) -> Told:
    """An event, encoded for all who read it."""
    return Told(number, event_id, session_id, kind, b"id: %b\n%b%b\n\n" % (event_id.encode(), _DATA, json))


class Ring:
    """The events `begin` to `end` - 1; the oldest go when there are too many, or too many bytes in them."""

    def __init__(self, max_events: int, max_bytes: int) -> None:
        self.begin = 1
        self.end = 1
        self._places: list[Told | None] = [None] * max_events
        self._bytes = 0
        self._max_bytes = max_bytes

    def put(self, told: Told) -> None:
        """Add the event number `end`."""
        if self.end - self.begin == len(self._places):
            self._drop()
        self._places[told.number % len(self._places)] = told
        self._bytes += len(told.stream)
        self.end += 1
        # The newest stays, however large it is.
        while self._bytes > self._max_bytes and self.end - self.begin > 1:
            self._drop()

    def since(self, number: int) -> Iterator[Told]:
        """The events from that number on, which must not be before `begin`. Do not wait while you look."""
        size = len(self._places)
        for at in range(number, self.end):
            told = self._places[at % size]
            assert told is not None  # begin <= at < end
            yield told

    def _drop(self) -> None:
        place = self.begin % len(self._places)
        told, self._places[place] = self._places[place], None
        self._bytes -= 0 if told is None else len(told.stream)
        self.begin += 1


class Recent:
    """Which texts came by last, so many of them."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._texts: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, text: str) -> bool:
        return text in self._texts

    def add(self, text: str) -> bool:
        """Remember it as the newest. False when it was known."""
        known = text in self._texts
        self._texts[text] = None
        self._texts.move_to_end(text)
        if len(self._texts) > self._size:
            self._texts.popitem(last=False)
        return not known


CHUNK_BYTES = 64 * 1024
"""What a reader gets at once, about."""
LATE_WEIGHT = 4
MAX_PAUSE = 2.0
"""Seconds."""


class Wanted(NamedTuple):
    """Which events a reader gets; an empty set does not choose."""

    sessions: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()

    def takes(self, told: Told) -> bool:
        """Whether it gets this one."""
        return (not self.sessions or told.session_id in self.sessions) and (
            not self.types or told.type in self.types
        )


class Reader:
    """Reads from `place` on. lost: from a place to what stands for the events from there to the ring's begin.

    on_cut: called once, when it is cut. pause: seconds from one chunk to the next, so that many readers take
    what there is in few large pieces.
    """

    def __init__(
        self,
        ring: Ring,
        wanted: Wanted,
        place: int,
        *,
        lost: Callable[[int], Told],
        pause: Callable[[], float],
        on_cut: Callable[[], None],
    ) -> None:
        self.first: list[Told] = []
        """To be told before all that is in the ring."""
        self._ring = ring
        self._wanted = wanted
        self._place = place
        self._lost = lost
        self._pause = pause
        self._on_cut = on_cut
        self._due = 0.0
        self._over = False
        self._news: trio.Event | None = None

    async def some(self) -> list[Told]:
        """All that came since the last call, up to a chunk; waits for at least one. Empty: it is over.

        Nothing is lost by a cancellation.
        """
        await trio.lowlevel.checkpoint()
        while not self._over:
            if not self.first and self._place == self._ring.end:
                await self._wait()
                continue
            late = await self._until_due()
            if found := self._take():
                # A process that comes late is short of time, and every chunk costs some.
                drained = self._place == self._ring.end
                pause = min(self._pause() + LATE_WEIGHT * late, MAX_PAUSE) if drained else 0.0
                self._due = trio.current_time() + pause
                return found
        return []

    async def _until_due(self) -> float:
        """Wait for the end of the pause; how many seconds later than that it is."""
        if trio.current_time() >= self._due:
            return 0.0
        await trio.sleep_until(self._due)
        return trio.current_time() - self._due

    def came(self, told: Told) -> None:
        """The newest event; only who waits for one has to know."""
        if self._news is None:
            return
        if self._wanted.takes(told):
            self._news.set()
        elif not self._news.is_set():
            self._place = told.number + 1

    def is_behind(self) -> bool:
        """Whether events have left the ring while it was busy with older ones. Who waits is never behind."""
        return self._news is None and self._place < self._ring.begin

    def cut(self) -> None:
        """End it: it is too slow for what happens."""
        self.end()
        self._on_cut()

    def end(self) -> None:
        """Nothing more comes."""
        self._over = True
        if self._news is not None:
            self._news.set()

    @property
    def place(self) -> int:
        """The number of the next event that it looks at."""
        return self._place

    async def _wait(self) -> None:
        self._news = trio.Event()
        try:
            await self._news.wait()
        finally:
            self._news = None

    def _take(self) -> list[Told]:
        found, self.first = self.first, []
        begin = self._ring.begin
        if self._place < begin:
            found.append(self._lost(self._place))
            self._place = begin
        size = 0
        for told in self._ring.since(self._place):
            if size >= CHUNK_BYTES:
                break
            self._place = told.number + 1
            if self._wanted.takes(told):
                found.append(told)
                size += len(told.stream)
        return found
