"""What other processes record in the store, told here as the same events. Knows no connection, no protocol.

The feed gets them, and the connections of this process that have such a session open. A session is read from
its last turn on when it is first seen to change; of the others nothing is kept. What this process wrote
itself was told when it happened, and is passed over.

Where a stored session's news begins when it is first seen to change. Knows the store's port alone.

A store tells that a session changed, not what; and nothing is remembered of sessions that do not change. So
it is told by the session's head and by its last turn.
"""

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import trio

from acp_server.gateway.feed.event_frames import Origin
from acp_server.gateway.feed.feed import Feed
from runtime.transcript.progress import TurnProgress
from runtime.transcript.turn_record import PAGE
from runtime.values.errors import StoreError, WholeturnError
from runtime.values.events import Event, TitleChanged
from runtime.values.ids_and_time import utc_now
from runtime.values.stored import SessionRecord, Store, StoredEntry

WINDOW = 250
"""Entries read in search of a turn's begin, at first; twice as many the next time."""
WIDEST = 4000
"""A turn with more entries than this is told from its middle on."""
TAIL = 8
"""Entries among which the end of the last turn is, if it ended."""
END = "end"
"""The kind of the entry that ends a turn."""


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


if TYPE_CHECKING:
    from acp_server.app.app import App
    from acp_server.gateway.sessions.process_app import GatewayState

FOLLOWED = 10_000
"""Sessions whose place is remembered."""
RECENT = 50
"""Sessions, those that changed last, whose place is asked for at the start: of these all turns are told that
a first look finds, of older ones the last.
"""
UNDELIVERED = 1000
"""Events that may wait for connections; beyond that nothing more is read for the moment."""
DOUBT = 64
"""Entries written here that are looked at again: those of a commit that was repeated count twice."""
CHANNEL = "acp"
"""How those are connected who prompt in this process."""

Deliver = Callable[[str, Event], Awaitable[None]]
log = logging.getLogger("wholeturn.gateway")


class Known(NamedTuple):
    """What this process knows of a session that it has open. alone: only it may write there now.

    seen: the last entry that it knows. taken_at: the last one before it was alone.
    """

    alone: bool
    seen: int
    taken_at: int


KnownOf = Callable[[str], Known | None]
"""From a session's id; None: it is not open here."""


async def follow(state: "GatewayState") -> None:
    """Tell what others do, until the store is closed. Also lets the feed know of this process's sessions."""
    app, feed = state.app, state.feed
    feed.origin_of = partial(origin_of, app)
    await Follower(app.store(), feed, state.hub.deliver, partial(known_here, app)).run()


def origin_of(app: "App", session_id: str) -> Origin:
    """What is known of where the events of a session of this process come from."""
    session = app.sessions.get(session_id)
    agent = "" if session is None else session.conversation.setup.agent
    return Origin(agent_alias=agent, channel=CHANNEL)


def known_here(app: "App", session_id: str) -> Known | None:
    """See `KnownOf`."""
    session = app.sessions.get(session_id)
    lease = None if session is None else session.lease
    if lease is None:
        return None
    return Known(bool(lease.current.fence), lease.seen, lease.current.last_seq)


def nothing_known(_session_id: str) -> None:
    """Where no session is open."""


@dataclass(slots=True)
class Followed:
    """A session that changed. place: the last entry that was looked at. turn: the one that is being told."""

    place: int
    turn: TurnProgress | None = None


class Follower:
    """Reads behind each change. deliver: to the connections of this process that have the session open."""

    def __init__(
        self,
        store: Store,
        feed: Feed,
        deliver: Deliver,
        known: KnownOf = nothing_known,
        now: Callable[[], str] = utc_now,
    ) -> None:
        self._store = store
        self._feed = feed
        self._deliver = deliver
        self._known = known
        self._began = now()
        self._followed: OrderedDict[str, Followed] = OrderedDict()
        self._at_rest: dict[str, int] = {}
        self._undelivered, self._to_deliver = trio.open_memory_channel[tuple[str, Event]](UNDELIVERED)

    async def run(self) -> None:
        """Tell what happens, until the store is closed."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._deliver_all)
            # Before the watch: what changes from here on is news.
            await self._begin()
            try:
                await self._watch()
            except StoreError as error:
                log.info("sessions are followed no longer: %s", error.message)  # closed by now
            nursery.cancel_scope.cancel()

    async def _watch(self) -> None:
        async with self._store.watch() as changes:
            await self._catch_up()
            async for session_ids in changes:
                for session_id in session_ids:
                    await self._look_again(session_id)

    async def _begin(self) -> None:
        """Remember where the sessions that may well change next are now."""
        try:
            page = await self._store.list_sessions(cwd=None, cursor=None, limit=RECENT)
            for record in page.sessions:
                place = await place_at_rest(self._store, record, self._began)
                if place is not None:
                    self._at_rest[record.session_id] = place
        except Exception:
            log.warning("the newest sessions cannot be looked at", exc_info=True)

    async def _catch_up(self) -> None:
        """Tell what happened in those sessions before the store was watched."""
        try:
            for session_id, place in list(self._at_rest.items()):
                if await self._store.entries(session_id, after=place, limit=1):
                    await self._look_again(session_id)
        except Exception:
            log.warning("the newest sessions cannot be looked at", exc_info=True)

    async def _look_again(self, session_id: str) -> None:
        """Trouble with one session, or at one moment, ends nothing: it is read at its next change."""
        try:
            await self._look(session_id)
        except WholeturnError as error:
            log.warning("session %s cannot be followed: %s", session_id, error.message)
        except Exception:
            log.exception("following session %s failed", session_id)

    async def _deliver_all(self) -> None:
        # Who does not read must not hold up the feed.
        async for session_id, event in self._to_deliver:
            await self._deliver(session_id, event)

    async def _look(self, session_id: str) -> None:
        """Tell what is new in a session."""
        followed, known = self._followed.get(session_id), self._known(session_id)
        if known is not None and known.alone and (followed is None or followed.place >= known.taken_at):
            self._remember(session_id, Followed(max(known.seen - DOUBT, known.taken_at)))
            return
        if followed is None:
            # Who has it open was shown all that is known here, and nothing of that again.
            followed = Followed(await self._first_place(session_id) if known is None else known.seen)
        self._remember(session_id, followed)
        while page := await self._store.entries(session_id, after=followed.place, limit=PAGE):
            for entry in page:
                await self._tell(session_id, followed, entry)

    async def _first_place(self, session_id: str) -> int:
        record = await self._store.session(session_id)
        if record is None:
            return 0
        if record.created_at < self._began and session_id in self._at_rest:
            return self._at_rest[session_id]
        return await start_of_news(self._store, record, self._began)

    def _remember(self, session_id: str, followed: Followed) -> None:
        self._at_rest.pop(session_id, None)
        self._followed[session_id] = followed
        self._followed.move_to_end(session_id)
        if len(self._followed) > FOLLOWED:
            self._followed.popitem(last=False)

    async def _tell(self, session_id: str, followed: Followed, entry: StoredEntry) -> None:
        followed.place = entry.seq
        if self._feed.ran_here(entry.turn_id):
            return
        if followed.turn is None or followed.turn.turn_id != entry.turn_id:
            followed.turn = TurnProgress(entry.turn_id)
        events = followed.turn.add(entry)
        if entry.kind == END:
            events += await self._head(session_id)
        for event in events:
            if self._feed.relay(session_id, event, Origin(turn_id=entry.turn_id)):
                await self._undelivered.send((session_id, event))

    async def _head(self, session_id: str) -> list[Event]:
        """The session's title and the time, as they are told at a turn's end."""
        record = await self._store.session(session_id)
        return [] if record is None else [TitleChanged(record.title, record.updated_at)]
