"""The newest events within a bound, and small memories of what came by. Knows nothing of who reads them."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple


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
