"""Which sessions somebody follows, and since when: readers of the feed, connections that have one open.

Who read the feed is counted for a while longer: networks break, and browsers come back behind the last event
that they saw. Knows no store, no event and no socket.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import trio

from runtime.values.ids_and_time import utc_now

LINGER_SECONDS = 60.0
"""How long one who read the feed counts after it went away."""

Sessions = frozenset[str]
"""Ids; an empty set stands for all sessions."""


@dataclass(slots=True, eq=False)
class Party:
    """Those who follow the same sessions. since: when the first of them came, ISO 8601, UTC.

    reads: they read the feed. until: when the party ends, in trio's time.
    """

    sessions: Sessions
    since: str
    reads: bool
    count: int = 0
    until: float = math.inf

    def takes(self, session_id: str) -> bool:
        """Whether it follows that session."""
        return not self.sessions or session_id in self.sessions


class Interest:
    """All parties. on_end: called when nobody reads any more what a party read."""

    def __init__(
        self,
        on_end: Callable[[], None] = lambda: None,
        *,
        linger: float = LINGER_SECONDS,
        now: Callable[[], str] = utc_now,
    ) -> None:
        self._on_end = on_end
        self._linger = linger
        self._now = now
        self._parties: dict[tuple[Sessions, bool], Party] = {}
        self._news = trio.Event()

    # ------------------------------------------------------------ for those who follow

    def come(self, sessions: Sessions, *, reads: bool = True) -> None:
        """Someone follows those sessions from now on."""
        self._end_parties()
        party = self._parties.get((sessions, reads))
        if party is None:
            party = self._parties[sessions, reads] = Party(sessions, self._now(), reads)
        party.count += 1
        party.until = math.inf
        self._news.set()

    def go(self, sessions: Sessions, *, reads: bool = True) -> None:
        """One who came has gone."""
        party = self._parties[sessions, reads]
        party.count -= 1
        if not party.count:
            party.until = trio.current_time() + (self._linger if reads else 0.0)
        self._news.set()

    # ------------------------------------------------------------ for the one who tells them

    @property
    def parties(self) -> list[Party]:
        """All who follow anything."""
        return list(self._parties.values())

    def takes(self, session_id: str) -> bool:
        """Whether someone follows that session."""
        return any(party.takes(session_id) for party in self._parties.values())

    def since(self, session_id: str) -> str:
        """Since when someone has followed it; now, when nobody does."""
        found = (party.since for party in self._parties.values() if party.takes(session_id))
        return min(found, default="") or self._now()

    async def changed(self) -> None:
        """Wait until someone comes or a party ends. For one task."""
        with trio.move_on_at(min((party.until for party in self._parties.values()), default=math.inf)):
            await self._news.wait()
        self._news = trio.Event()
        self._end_parties()

    def _end_parties(self) -> None:
        now = trio.current_time()
        over = [key for key, party in self._parties.items() if party.until <= now]
        for key in over:
            del self._parties[key]
        if any(reads for _, reads in over):
            self._on_end()
