"""What other processes record in the store, told here as the same events. Knows no connection, no protocol.

The feed gets them, and the connections of this process that have such a session open. Nothing is read, and
the store is not watched, while nobody follows. A store tells that a session changed, not what; and nothing is
remembered of sessions that do not change. So where the news begins is told by the session's head and by its
last turn, when it is first seen to change. What this process wrote itself was told when it happened, and is
passed over.
"""

import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

import trio

from acp_server.gateway.clients.reading_places import (
    END,
    Followed,
    Known,
    KnownOf,
    Places,
    nothing_known,
    place_at_rest,
    start_of_news,
)
from acp_server.gateway.feed.event_frames import Origin
from acp_server.gateway.feed.feed import Feed
from acp_server.gateway.feed.interest import Party
from runtime.transcript.progress import TurnProgress
from runtime.transcript.turn_record import PAGE
from runtime.values.errors import StoreError, WholeturnError
from runtime.values.events import Event, TitleChanged
from runtime.values.stored import SessionRecord, Store, StoredEntry

if TYPE_CHECKING:
    from acp_server.app.app import App
    from acp_server.gateway.sessions.process_app import GatewayState

RECENT = 50
"""Sessions, those that changed last, whose place is asked for when someone comes who follows all: of these
all turns are told that a first look finds, of older ones the last.
"""
GATHER_SECONDS = 0.1
"""The first change is heard at once, those that follow on it together: every look wakes the process, and a
busy store has hundreds a second.
"""
CHECK_SECONDS = 2.0
"""How soon it shows that a session that only this process wrote is its own no longer."""
PAUSE_SECONDS = 1.0
"""Before the store is watched anew, where it could not be."""
UNDELIVERED = 1000
"""Events that may wait for connections; beyond that nothing more is read for the moment."""
CHANNEL = "acp"
"""How those are connected who prompt in this process."""

Deliver = Callable[[str, Event], Awaitable[None]]
log = logging.getLogger("wholeturn.gateway")


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
    session = app.sessions.get(session_id)
    lease = None if session is None else session.lease
    if lease is None:
        return None
    return Known(lease.is_held, lease.seen, lease.current.last_seq)


class Heard:
    """What was heard of and is still to be looked at. closed: the store is, and nothing more will come."""

    def __init__(self) -> None:
        self.closed = False
        self._due: set[str] = set()
        self._news = trio.Event()

    def add(self, session_ids: frozenset[str] = frozenset()) -> None:
        """Those changed, or others are followed from now on."""
        self._due |= session_ids
        self._news.set()

    def close(self) -> None:
        """It was the last."""
        self.closed = True
        self._news.set()

    def take(self) -> set[str]:
        """The sessions that changed since the last time."""
        self._news = trio.Event()
        due, self._due = self._due, set()
        return due

    async def wait(self, seconds: float) -> None:
        """Until there is something to look at, or the time is up."""
        with trio.move_on_after(seconds):
            await self._news.wait()


class Follower:
    """Reads behind each change. deliver: to the connections of this process that have the session open."""

    def __init__(self, store: Store, feed: Feed, deliver: Deliver, known: KnownOf = nothing_known) -> None:
        self._store = store
        self._feed = feed
        self._deliver = deliver
        self._known = known
        self._places = Places()
        self._met: set[Party] = set()
        self._heard = Heard()
        self._undelivered, self._to_deliver = trio.open_memory_channel[tuple[str, Event]](UNDELIVERED)

    async def run(self) -> None:
        """Tell what happens while somebody follows, until the store is closed."""
        interest = self._feed.interest
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._deliver_all)
            while not self._heard.closed:
                if self._is_needed():
                    await self._follow()
                else:
                    self._places.keep(lambda _: False)
                    with trio.move_on_after(CHECK_SECONDS if interest.parties else math.inf):
                        await interest.changed()
            nursery.cancel_scope.cancel()

    @property
    def following(self) -> bool:
        """Whether it hears of all that somebody follows."""
        return bool(self._met) and self._met >= set(self._feed.interest.parties)

    def _is_needed(self) -> bool:
        """Whether others may do what somebody follows: where a session is this process's own, nobody else
        can.
        """
        return any(party.reads or not self._is_own(party) for party in self._feed.interest.parties)

    def _is_own(self, party: Party) -> bool:
        return all((known := self._known(name)) is not None and known.alone for name in party.sessions)

    async def _follow(self) -> None:
        """Until nothing is to be followed any more, or the store is closed."""
        try:
            async with self._store.watch() as changes, trio.open_nursery() as nursery:
                nursery.start_soon(self._hear, changes)
                nursery.start_soon(self._heed)
                while self._is_needed() and not self._heard.closed:
                    await self._tell_news()
                    await self._heard.wait(CHECK_SECONDS)
                # What came last, before this process took a session, was perhaps not heard of yet.
                await self._tell_news(everywhere=True)
                nursery.cancel_scope.cancel()
        except* StoreError as errors:
            log.info("sessions cannot be followed just now: %s", errors.exceptions[0])
            await trio.sleep(PAUSE_SECONDS)
        self._met.clear()

    async def _hear(self, changes: AsyncIterator[frozenset[str]]) -> None:
        async for session_ids in changes:
            self._heard.add(session_ids)
            await trio.sleep(GATHER_SECONDS)
        self._heard.close()

    async def _heed(self) -> None:
        while True:
            await self._feed.interest.changed()
            self._heard.add()

    async def _tell_news(self, *, everywhere: bool = False) -> None:
        due, takes = self._heard.take(), self._feed.interest.takes
        self._places.keep(takes)
        parties = set(self._feed.interest.parties)
        self._met &= parties
        for party in parties - self._met:
            await self._meet(party)
            self._met.add(party)
        for session_id in filter(takes, {*due, *self._places} if everywhere else due):
            await self._look_again(session_id)

    async def _meet(self, party: Party) -> None:
        """Remember where the sessions are that may well change next; tell what happened in them since."""
        try:
            for record in await self._records(party):
                session_id = record.session_id
                is_known = self._places.of(session_id) is not None or self._known(session_id) is not None
                place = None if is_known else await place_at_rest(self._store, record, party.since)
                if place is not None:
                    self._places.rest(session_id, place)
                if is_known or (place is None and record.updated_at >= party.since):
                    await self._look_again(session_id)
        except Exception:
            log.warning("the newest sessions cannot be looked at", exc_info=True)

    async def _records(self, party: Party) -> list[SessionRecord]:
        if not party.sessions:
            return list((await self._store.list_sessions(cwd=None, cursor=None, limit=RECENT)).sessions)
        found = [await self._store.session(name) for name in party.sessions if "\0" not in name]
        return [record for record in found if record is not None]

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
        followed, known = self._places.of(session_id), self._known(session_id)
        if known is not None and known.alone and (followed is None or followed.place >= known.taken_at):
            self._places.remember(session_id, Followed(known.shown))
            return
        if followed is None:
            followed = Followed(await self._first_place(session_id) if known is None else known.shown)
        self._places.remember(session_id, followed)
        while page := await self._store.entries(session_id, after=followed.place, limit=PAGE):
            for entry in page:
                await self._tell(session_id, followed, entry)

    async def _first_place(self, session_id: str) -> int:
        record = await self._store.session(session_id)
        if record is None:
            return 0
        place = self._places.at_rest(session_id)
        if place is None:
            place = await start_of_news(self._store, record, self._feed.interest.since(session_id))
        return place

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
