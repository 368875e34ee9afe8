"""A session: its conversation, the prompts that wait, the one turn that runs, and how it is cancelled.

Knows no protocol, no provider and no store by name. `submit` and `cancel` decide at once, in the order in
which they are called; `run` does the work in the caller's task. What moves a session between its states is
one table: a missing row is the protocol error.
"""

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import trio

from runtime.conversation.conversation import Conversation
from runtime.conversation.lease import SessionLease
from runtime.conversation.load_and_fork import reload
from runtime.session.finish_turn import settle
from runtime.session.turn import Turn
from runtime.values.errors import InvalidRequest
from runtime.values.prompt import Prompt


class State(StrEnum):
    """Where a session stands."""

    IDLE = "idle"
    RUNNING = "running"
    CANCELLING = "cancelling"
    CLOSED = "closed"


class Signal(StrEnum):
    """What happens to it."""

    PROMPT = "prompt"
    CANCEL = "cancel"
    NEXT = "next turn begins"
    DONE = "turn ended"
    CLOSE = "close"


TABLE: dict[tuple[State, Signal], State] = {
    (State.IDLE, Signal.PROMPT): State.RUNNING,
    (State.RUNNING, Signal.PROMPT): State.RUNNING,
    (State.CANCELLING, Signal.PROMPT): State.CANCELLING,
    (State.IDLE, Signal.CANCEL): State.IDLE,
    (State.RUNNING, Signal.CANCEL): State.CANCELLING,
    (State.CANCELLING, Signal.CANCEL): State.CANCELLING,
    (State.CLOSED, Signal.CANCEL): State.CLOSED,
    (State.RUNNING, Signal.NEXT): State.RUNNING,
    (State.CANCELLING, Signal.NEXT): State.RUNNING,
    (State.RUNNING, Signal.DONE): State.IDLE,
    (State.CANCELLING, Signal.DONE): State.IDLE,
    (State.CLOSED, Signal.DONE): State.CLOSED,
    (State.CLOSED, Signal.NEXT): State.CLOSED,
    (State.IDLE, Signal.CLOSE): State.CLOSED,
    (State.RUNNING, Signal.CLOSE): State.CLOSED,
    (State.CANCELLING, Signal.CLOSE): State.CLOSED,
    (State.CLOSED, Signal.CLOSE): State.CLOSED,
}


def move(state: State, signal: Signal) -> State:
    """The next state. Raises InvalidRequest when the signal makes no sense there."""
    try:
        return TABLE[state, signal]
    except KeyError:
        raise InvalidRequest(f"The session is {state.value}: {signal.value} is not possible now.") from None


CANCELLED = "cancelled"

log = logging.getLogger("wholeturn.session")


class ToolServers(Protocol):
    """Servers outside that bring a session tools while it lives."""

    def start(self) -> None:
        """Connect in the background; the second time nothing."""
        ...

    async def before_turn(self, talk: Conversation, text: str) -> None:
        """Hand over the tools that are there now. text: the prompt. May wait, and may be cancelled."""
        ...

    async def aclose(self) -> None:
        """Close all connections; returns when all that was started has ended."""
        ...


Preparation = Callable[[Conversation, Prompt], Awaitable[Prompt]]
"""Done before each turn; gives the prompt as the model is to get it. May wait, and may be cancelled."""


@dataclass(slots=True, eq=False)
class Ticket:
    """A prompt that was accepted: it waits for its place, then runs once. ending: of its turn's end."""

    prompt: Prompt
    ready: trio.Event = field(default_factory=trio.Event)
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    ending: trio.CancelScope = field(default_factory=trio.CancelScope)
    cancelled: bool = False

    def cancel(self) -> None:
        """Stop it, running or waiting."""
        self.cancelled = True
        self.scope.cancel()
        self.ending.cancel()
        self.ready.set()


class Session:
    """One conversation with one running turn at most. A second prompt waits; cancel clears what waits."""

    def __init__(
        self,
        conversation: Conversation,
        servers: ToolServers | None = None,
        lease: SessionLease | None = None,
        prepare: Preparation | None = None,
    ) -> None:
        self.conversation = conversation
        self.prepare = prepare
        self.servers = servers
        self.lease = lease
        self.state = State.IDLE
        self.idle = trio.Event()
        self.idle.set()
        self._current: Ticket | None = None
        self._waiting: deque[Ticket] = deque()

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self.conversation.session_id

    def submit(self, prompt: Prompt) -> Ticket:
        """Accept a prompt. Raises InvalidRequest on a closed session."""
        self.state = move(self.state, Signal.PROMPT)
        ticket = Ticket(self.conversation.setup.redaction.prompt(prompt))
        if self._current is None:
            self._begin(ticket)
        else:
            self._waiting.append(ticket)
        return ticket

    async def run(self, ticket: Ticket, begun: Callable[[], None] | None = None) -> str:
        """The turn of a ticket, from its place in the queue to its recorded end; its ACP stop reason.

        Call it once a ticket. begun: called when its turn begins; never for one that was stopped before.
        Raises what ended the turn (ProviderError, AuthRequired, …), after it was
        recorded and shown.
        """
        try:
            await ticket.ready.wait()
            if ticket is not self._current:
                return CANCELLED
            if begun is not None:
                begun()
            return await self._run_turn(ticket)
        finally:
            self._finish(ticket)

    def cancel(self) -> None:
        """Stop the running turn and whatever waits. Nothing runs: nothing happens."""
        self.state = move(self.state, Signal.CANCEL)
        self._cancel(tuple(self._waiting))
        if self._current is not None:
            self._current.cancel()

    def give_up(self, ticket: Ticket) -> None:
        """Stop one prompt, running or waiting; what waits behind it goes on."""
        if ticket is self._current:
            self.state = move(self.state, Signal.CANCEL)
            ticket.cancel()
        elif ticket in self._waiting:
            self._cancel((ticket,))

    async def close(self) -> None:
        """Cancel, take no more prompts, wait for the turn and the servers to end, give the lease back."""
        self.state = move(self.state, Signal.CLOSE)
        self._cancel(tuple(self._waiting))
        if self._current is not None:
            self._current.cancel()
        if self.servers is not None:
            await self.servers.aclose()
        await self.idle.wait()
        if self.lease is not None:
            await self.lease.release()

    async def _run_turn(self, ticket: Ticket) -> str:
        turn = Turn(self.conversation, ticket.prompt)
        try:
            with ticket.scope:
                if self.lease is not None and await self.lease.hold():
                    await reload(self.conversation)
                prompt = ticket.prompt
                if self.prepare is not None:
                    prompt = await self.prepare(self.conversation, prompt)
                if self.servers is not None:
                    await self.servers.before_turn(self.conversation, prompt.text)
                turn = Turn(self.conversation, prompt)
                await turn.run()
        except BaseException as error:
            await self._settle(turn, ticket, error)
            # Whatever a cancel made fail, the answer to it is never an error.
            if ticket.cancelled and isinstance(error, Exception):
                return CANCELLED
            raise
        await self._settle(turn, ticket, None)
        return CANCELLED if ticket.cancelled else turn.ending.stop_reason

    async def _settle(self, turn: Turn, ticket: Ticket, error: BaseException | None) -> None:
        """Record and show the turn's end, without a limit until it is cancelled. Raises what stopped that."""
        try:
            with ticket.ending:
                await settle(turn, error=error, cancelled=ticket.cancelled)
        except Exception:
            if not ticket.cancelled:
                raise
            log.exception("the end of a cancelled turn could not be recorded")

    def _begin(self, ticket: Ticket) -> None:
        self._current = ticket
        self.conversation.begin_turn(ticket.prompt)
        if self.idle.is_set():
            # Else somebody may wait for it, to whom the turn before was not the last.
            self.idle = trio.Event()
        ticket.ready.set()

    def _cancel(self, tickets: Sequence[Ticket]) -> None:
        for ticket in tickets:
            self._waiting.remove(ticket)
            ticket.cancel()

    def _finish(self, ticket: Ticket) -> None:
        """Make room for the next, in every way out of a turn."""
        if ticket is not self._current:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
            return
        self._current = None
        if self._waiting:
            self.state = move(self.state, Signal.NEXT)
            self._begin(self._waiting.popleft())
        else:
            self.state = move(self.state, Signal.DONE)
            self.idle.set()
