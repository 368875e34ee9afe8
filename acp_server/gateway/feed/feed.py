"""All events of the gateway in one bounded ring, and those who read along. Knows neither HTTP nor sessions.

Each event is encoded once. A reader is nothing but a place in the ring, so a thousand of them cost no more
memory than one: who falls behind the ring is cut, alone, and may come back with the id of the last event.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from acp_server.gateway.feed.event_frames import KINDS, Origin, frame, lost_frame
from acp_server.gateway.feed.event_schemas import EVENTS_LOST
from acp_server.gateway.feed.interest import Interest
from acp_server.gateway.feed.ring import Reader, Recent, Ring, Told, Wanted, told
from acp_server.wire.messages import Unsendable, encode
from runtime.values.events import Event, HistoryTrimmed
from runtime.values.ids_and_time import new_id, utc_now

RING_EVENTS = 4096
RING_BYTES = 16 * 1024 * 1024
"""Of frames. What is older can't be replayed."""
PACE = 0.001
"""Seconds of a reader's pause behind a chunk, times the number of readers: all of them together get so many
chunks a second.
"""
REMEMBERED = 4096
"""How many trims, and turns of this process, are known to have been told; and runs of this process."""
CUT_EVERY = 64
"""Events from one look for readers that are behind to the next."""

log = logging.getLogger("wholeturn.gateway")


ALL = Wanted()


def unknown_origin(_session_id: str) -> Origin:
    """Where nothing is known of sessions."""
    return Origin()


class Feed:
    """The ring and its readers. An event's id is `<run>-<number>`, so that one of an earlier run is known.

    A run ends with the process, and when nobody has read for so long that other processes are not followed
    any more. origin_of: where a session's events come from at this moment. interest: whose events are wanted.
    """

    def __init__(
        self,
        origin_of: Callable[[str], Origin] = unknown_origin,
        *,
        max_events: int = RING_EVENTS,
        max_bytes: int = RING_BYTES,
        now: Callable[[], str] = utc_now,
    ) -> None:
        self.origin_of = origin_of
        self.ring = Ring(max_events, max_bytes)
        self.closed = False
        self.interest = Interest(self._begin_run, now=now)
        self._now = now
        self._run = ""
        self._runs = Recent(REMEMBERED)
        self._begin_run()
        self._readers: set[Reader] = set()
        self._trims = Recent(REMEMBERED)
        self._turns = Recent(REMEMBERED)

    # ------------------------------------------------------------ for those who tell

    def publish(self, session_id: str, event: Event, *, turn_id: str | None = None) -> None:
        """Tell what a session of this process emitted, in that turn if in any. Never waits, never raises."""
        try:
            origin = self.origin_of(session_id)
            if turn_id:
                origin = origin._replace(turn_id=turn_id)
            if origin.turn_id:
                self._turns.add(origin.turn_id)
            self.relay(session_id, event, origin)
        except Exception:
            log.exception("an event was not told to the feed")

    def relay(self, session_id: str, event: Event, origin: Origin) -> bool:
        """Tell what another process recorded. False: it is a trim that was told already."""
        if isinstance(event, HistoryTrimmed) and not self._trims.add(f"{session_id} {event.trim_id}"):
            return False
        if not self.closed:
            self._put(session_id, event, origin)
        return True

    def ran_here(self, turn_id: str) -> bool:
        """Whether that turn was told by a session of this process; only the newest are known."""
        return turn_id in self._turns

    def close(self) -> None:
        """Tell nothing any more; all readers end."""
        self.closed = True
        for reader in self._readers:
            reader.end()

    def _put(self, session_id: str, event: Event, origin: Origin) -> None:
        number = self.ring.end
        event_id = self.id_of(number)
        try:
            data = encode(frame(event_id, session_id, event, self._now(), origin))[:-1]
        except Unsendable as reason:
            log.error("an event was left out of the feed: %s", reason)
            return
        newest = told(number, event_id, session_id, KINDS[type(event)].type, data)
        self.ring.put(newest)
        for reader in self._readers:
            reader.came(newest)
        if number % CUT_EVERY == 0:
            self._cut_slow()

    def _cut_slow(self) -> None:
        for reader in [reader for reader in self._readers if reader.is_behind()]:
            self._readers.discard(reader)
            reader.cut()

    # ------------------------------------------------------------ for those who read

    @contextmanager
    def read(
        self, wanted: Wanted = ALL, after: str | None = None, on_cut: Callable[[], None] = lambda: None
    ) -> Iterator[Reader]:
        """Read from now on; after: from behind the event of that id. on_cut: called once, when it is cut."""
        self.interest.come(wanted.sessions)
        try:
            reader = self._reader(wanted, after, on_cut)
            self._readers.add(reader)
            yield reader
        finally:
            self._readers.discard(reader)
            self.interest.go(wanted.sessions)

    @property
    def places(self) -> list[int]:
        """How far each reader is: the number of its next event."""
        return [reader.place for reader in self._readers]

    def id_of(self, number: int) -> str:
        """The id of the event of that number."""
        return f"{self._run}-{number}"

    def _reader(self, wanted: Wanted, after: str | None, on_cut: Callable[[], None]) -> Reader:
        place, known = self._place(after)
        reader = Reader(
            self.ring,
            wanted,
            place,
            lost=lambda place: self._lost(self.id_of(place - 1), self.ring.begin - place, self.ring.begin),
            pause=lambda: PACE * len(self._readers),
            on_cut=on_cut,
        )
        if not known:
            reader.first.append(self._lost(after or "", None, max(place, self.ring.begin)))
        if self.closed:
            reader.end()
        return reader

    def _place(self, after: str | None) -> tuple[int, bool]:
        """Where to read on behind an id, and whether all that happened since is known."""
        if after is None:
            return self.ring.end, True
        run, _, number = after.rpartition("-")
        is_ours = run in self._runs and len(number) < 20 and number.isascii() and number.isdigit()
        if is_ours and int(number) < self.ring.end:
            return int(number) + 1, run == self._run
        return self.ring.begin, False

    def _begin_run(self) -> None:
        self._run = new_id()[:8]
        self._runs.add(self._run)

    def _lost(self, after: str, count: int | None, place: int) -> Told:
        """What stands for events that are gone. after: the last one that the reader has told of. place: where
        it reads on.
        """
        number = place - 1
        event_id = self.id_of(number)
        data = encode(lost_frame(event_id, after[:80], count, self._now()))[:-1]
        return told(number, event_id, "", EVENTS_LOST, data)
