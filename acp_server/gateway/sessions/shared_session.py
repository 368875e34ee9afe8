"""One session's connections: who hears what happens in it, and who is asked. Knows no protocol."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import trio

from acp_server.gateway.sessions.running_turn import PROMPT, Guest, Running, key_of
from runtime.ports import Client
from runtime.values.events import Event, ToolCallChanged

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Place:
    """A connection in a room. behind: what it gets after the stored part was shown; None: it is live.

    asking: questions that wait for its answer.
    """

    guest: Guest
    behind: list[Event] | None = None
    asking: set[trio.CancelScope] = field(default_factory=set)


class Room:
    """The connections that have a session open, in the order in which they came."""

    def __init__(self, session_id: str, emptied: Callable[["Room"], None]) -> None:
        self.session_id = session_id
        self.opening = trio.Lock()
        """Held while the session is opened or closed."""
        self.turn_id = ""
        self.terminals: dict[str, Guest] = {}
        """The client's terminals, by id: whose they are."""
        self._emptied = emptied
        self._places: dict[Guest, Place] = {}
        self._running = Running()
        self._came = trio.Event()

    # ------------------------------------------------------------ coming and going

    @property
    def empty(self) -> bool:
        """Whether nobody has the session open."""
        return not self._places

    def join(self, guest: Guest, *, behind: bool = False) -> None:
        """A connection opens the session. behind: it is shown the stored part first, then `catch_up`."""
        there = self._places.get(guest)
        asking = there.asking if there is not None else set()
        self._places[guest] = Place(guest, self._running.events() if behind else None, asking)
        self._came.set()

    def leave(self, guest: Guest) -> None:
        """It closes the session, or is gone."""
        place = self._places.pop(guest, None)
        if place is None:
            return
        for scope in place.asking:
            scope.cancel()
        if not self._places:
            self._came = trio.Event()
            self._emptied(self)

    def clear(self) -> None:
        """The session ends for everybody."""
        for guest in tuple(self._places):
            guest.let_go(self.session_id)

    async def catch_up(self, guest: Guest) -> None:
        """Hand over what happened while the stored part was shown; from then on the connection is live."""
        place = self._places.get(guest)
        if place is None:
            return
        try:
            while place.behind:
                await self._tell(place, place.behind.pop(0))
        finally:
            place.behind = None

    def is_to_come(self, guest: Guest, event: Event) -> bool:
        """Whether a part of the stored transcript will be told to that connection as something live."""
        place, key = self._places.get(guest), key_of(event)
        return bool(key and place and any(key == key_of(one) for one in place.behind or ()))

    # ------------------------------------------------------------ telling

    async def tell(self, event: Event, *, besides: Guest | None = None) -> None:
        """Give an event to all connections, each in its turn. besides: one that knows it already."""
        self._running.note(event)
        for place in list(self._places.values()):
            if place.guest is besides:
                continue
            if place.behind is not None:
                place.behind.append(event)
            else:
                await self._tell(place, event)

    async def _tell(self, place: Place, event: Event) -> None:
        guest = place.guest
        if isinstance(event, ToolCallChanged) and self._is_elsewhere(event.terminal_id, guest):
            # Another client's terminal means nothing here; the text of it is shown instead.
            event = replace(event, terminal_id="")
        await guest.tell(self.session_id, event)

    def _is_elsewhere(self, terminal_id: str, guest: Guest) -> bool:
        return bool(terminal_id) and self.terminals.get(terminal_id) is not guest

    def turn_begins(self, turn_id: str) -> None:
        """What is told from now on belongs to that turn."""
        self.turn_id, self._running = turn_id, Running()

    def turn_over(self, turn_id: str) -> None:
        """That turn has ended; it may never have begun."""
        if turn_id and turn_id == self.turn_id:
            self.turn_id, self._running = "", Running()

    # ------------------------------------------------------------ asking

    def asked(self) -> Guest | None:
        """Whose business a question is: the one who prompted, else the newest; None: nobody is there."""
        prompt = PROMPT.get()
        if prompt is not None and prompt.guest in self._places:
            return prompt.guest
        return next(reversed(self._places), None)

    async def ask(self, question: Callable[[Client], Awaitable[T]], nothing: T) -> T:
        """An answer to a question. When the one who is asked goes away, or lets go of the session, the next
        one is asked, or the next to come. nothing: an answer that is none.
        """
        while True:
            guest = await self.someone()
            asking, answer = self._places[guest].asking, nothing
            with trio.CancelScope() as scope:
                asking.add(scope)
                try:
                    answer = await question(guest.client)
                finally:
                    asking.discard(scope)
            stayed = guest in self._places and not scope.cancelled_caught
            if stayed or answer != nothing:
                return answer

    async def someone(self) -> Guest:
        """The same, waiting until there is one."""
        while (guest := self.asked()) is None:
            await self._came.wait()
        return guest
