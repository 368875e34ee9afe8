"""From which entry on a stored session is read: where its news begins, and how far it was told.

A store tells that a session changed, not what; and nothing is remembered of sessions that do not change. So
where the news of one begins that is first seen to change is told by its head and by its last turn. Knows the
store's port alone.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from runtime.transcript.progress import TurnProgress
from runtime.values.stored import SessionRecord, Store, StoredEntry

WINDOW = 250
"""Entries read in search of a turn's begin, at first; twice as many the next time."""
WIDEST = 4000
"""A turn with more entries than this is told from its middle on."""
TAIL = 8
"""Entries among which the end of the last turn is, if it ended."""
END = "end"
"""The kind of the entry that ends a turn."""
FOLLOWED = 10_000
"""Sessions whose place is remembered."""
DOUBT = 64
"""Entries written here that are looked at again: those of a commit that was repeated count twice."""


class Known(NamedTuple):
    """What this process knows of a session that it has open. alone: only it may write there now.

    seen: the last entry that it knows. taken_at: the last one before it was alone, below 0 if it never was.
    """

    alone: bool
    seen: int
    taken_at: int

    @property
    def shown(self) -> int:
        """The last entry that all who have the session open were shown."""
        return self.seen if self.taken_at < 0 else max(self.seen - DOUBT, self.taken_at)


KnownOf = Callable[[str], Known | None]
"""From a session's id; None: it is not open here."""


def nothing_known(_session_id: str) -> None:
    """Where no session is open."""


@dataclass(slots=True)
class Followed:
    """A session that changed. place: the last entry that was looked at. turn: the one that is being told."""

    place: int
    turn: TurnProgress | None = None


class Places:
    """How far each followed session was told. Those at rest are known by their last entry alone."""

    def __init__(self) -> None:
        self._followed: OrderedDict[str, Followed] = OrderedDict()
        self._at_rest: dict[str, int] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._followed))

    def of(self, session_id: str) -> Followed | None:
        """How far it was told; None when that is not remembered."""
        return self._followed.get(session_id)

    def at_rest(self, session_id: str) -> int | None:
        """The last entry of a session in which nothing has happened yet."""
        return self._at_rest.get(session_id)

    def rest(self, session_id: str, place: int) -> None:
        """Nothing has happened there behind that entry."""
        self._at_rest.setdefault(session_id, place)

    def remember(self, session_id: str, followed: Followed) -> None:
        """It is told from there on."""
        self._at_rest.pop(session_id, None)
        self._followed[session_id] = followed
        self._followed.move_to_end(session_id)
        if len(self._followed) > FOLLOWED:
            self._followed.popitem(last=False)

    def keep(self, wanted: Callable[[str], bool]) -> None:
        """Forget the others: where a session is that was not followed tells nothing of where it is later."""
        for places in (self._followed, self._at_rest):
            for session_id in [name for name in places if not wanted(name)]:
                del places[session_id]


async def start_of_news(store: Store, record: SessionRecord, since: str) -> int:
    """The entry behind which all is news, if the session changed since that moment (ISO 8601, UTC).

    Of an older session it is the last turn, unless that ended before and only the head has changed. Copies of
    other sessions bring no news.
    """
    last = await last_place(store, record.session_id)
    turn = await last_turn(store, record.session_id, last)
    if not turn:
        return 0
    ended = any(entry.kind == END for entry in turn)
    if record.created_at >= since:
        is_copy = ended and record.updated_at == record.created_at
        return last if is_copy else 0
    return last if ended and record.updated_at < since else turn[0].seq - 1


async def place_at_rest(store: Store, record: SessionRecord, since: str) -> int | None:
    """The last entry of a session in which nothing has happened since; None while a turn runs in it, or broke
    off, and of one that changed since: its news begin elsewhere.
    """
    if record.created_at >= since or record.updated_at >= since:
        return None
    last = await last_place(store, record.session_id)
    tail = await store.entries(record.session_id, after=max(last - TAIL, 0), limit=TAIL)
    turn = [entry for entry in tail if entry.turn_id == tail[-1].turn_id]
    # Trims for the next turn may follow on a turn's end.
    return last if any(entry.kind == END for entry in turn) else None


async def last_place(store: Store, session_id: str) -> int:
    """The seq of a session's last entry, 0 for none; found in steps that halve what is left."""
    there, beyond = 0, 1
    while await store.entries(session_id, after=beyond - 1, limit=1):
        there, beyond = beyond, beyond * 2
    while beyond - there > 1:
        middle = (there + beyond) // 2
        if await store.entries(session_id, after=middle - 1, limit=1):
            there = middle
        else:
            beyond = middle
    return there


async def last_turn(store: Store, session_id: str, last: int) -> list[StoredEntry]:
    """The entries of the turn that the last one belongs to."""
    window = WINDOW
    while True:
        after = max(last - window, 0)
        found = await store.entries(session_id, after=after, limit=window)
        turn = list(found)
        for at in range(len(found) - 1, -1, -1):
            if found[at].turn_id != found[-1].turn_id:
                turn = found[at + 1 :]
                break
        if len(turn) < len(found) or not after or window >= WIDEST:
            return turn
        window *= 2
