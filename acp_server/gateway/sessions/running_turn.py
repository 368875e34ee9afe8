"""A turn that runs over the gateway: on when its client goes, whole for whom comes in its middle.

Also says which connection a task works for: questions of a turn go to the one that prompted. Knows neither
sockets nor the protocol.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Protocol

import trio

from runtime.ports import Client
from runtime.values.events import (
    AgentText,
    AgentThought,
    Event,
    ToolCallChanged,
    ToolCallStarted,
    UserMessage,
)


class Guest(Protocol):
    """Someone who has sessions open. client: who is asked. gone: nobody is there any more."""

    gone: bool
    client: Client

    async def tell(self, session_id: str, event: Event) -> None:
        """Tell what happened. Waits while the client is far behind."""
        ...

    def let_go(self, session_id: str) -> None:
        """Forget a session; what happens there is not told any more."""
        ...


CANCELLED = {"stopReason": "cancelled"}


@dataclass(slots=True, eq=False)
class Asked:
    """One prompt on its way. run: the turn, to its response. stop: ends that turn, running or waiting.

    over: called once when it is over. turn_id: '' until the turn begins.
    """

    guest: Guest
    session_id: str
    run: Callable[[], Awaitable[object]]
    stop: Callable[[], None]
    over: Callable[["Asked"], None]
    turn_id: str = ""
    done: trio.Event = field(default_factory=trio.Event)
    _result: object = None
    _error: Exception | None = None

    async def work(self) -> None:
        """Run the turn in a task of its own, which outlives the connection."""
        PROMPT.set(self)
        try:
            self._result = await self.run()
        except Exception as error:  # noqa: BLE001 - whoever waits for the turn raises it
            self._error = error
        finally:
            self.over(self)
            self.done.set()

    async def response(self) -> object:
        """What the turn gave, for the one who asked. Raises what ended it."""
        await self.done.wait()
        if self._error is not None:
            raise self._error
        return CANCELLED if self._result is None else self._result

    def give_up(self) -> None:
        """Stop it for a client that is there; when it has gone, only nobody waits any more."""
        if self.guest.gone:
            self.done.set()
        else:
            self.stop()


PROMPT: ContextVar[Asked | None] = ContextVar("prompt", default=None)
"""The prompt that the current task, or the one that started it, works for."""

MOST_MESSAGES = 256
"""Messages and calls that are kept: those before are stored, and a replay shows them."""

Text = AgentText | AgentThought


def key_of(event: Event) -> str:
    """What an event belongs to: the id of its message or call; '' for one that stands alone."""
    match event:
        case UserMessage() | AgentText() | AgentThought():
            return event.message_id
        case ToolCallStarted() | ToolCallChanged():
            return event.call_id
        case _:
            return ""


class Running:
    """The newest messages and calls of one turn, each with all that was shown of it."""

    def __init__(self) -> None:
        self._shown: dict[str, list[Event]] = {}

    def note(self, event: Event) -> None:
        """It was shown now. What was left out before stays out: half a message is worse than none."""
        key = key_of(event)
        if not key:
            return
        if key not in self._shown and isinstance(event, ToolCallChanged):
            return
        shown = self._shown.setdefault(key, [])
        if shown and _replaces(event, shown[-1]):
            shown[-1] = event
        else:
            shown.append(event)
        if len(self._shown) > MOST_MESSAGES:
            del self._shown[next(iter(self._shown))]

    def events(self) -> list[Event]:
        """All of it, each message and call in one piece."""
        return [event for shown in self._shown.values() for event in _joined(shown)]


def _replaces(event: Event, last: Event) -> bool:
    """Whether it is a later state of a call that shows all there is to see."""
    if not isinstance(event, ToolCallChanged) or not isinstance(last, ToolCallChanged):
        return False
    return event.content is not None


def _joined(shown: list[Event]) -> Iterator[Event]:
    """The events of one message or call, neighbouring pieces of text as one."""
    for kind, run in groupby(shown, type):
        if kind is AgentText or kind is AgentThought:
            pieces = [event for event in run if isinstance(event, Text)]
            yield replace(pieces[0], text="".join(piece.text for piece in pieces))
        else:
            yield from run
