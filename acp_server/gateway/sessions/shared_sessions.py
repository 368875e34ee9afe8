"""All sessions that are open over the gateway: who has them open, and the client that a session is given.

That client is told to all who have the session open and asked of one of them. Where nobody is there, files
are the disk's, and a question waits. Knows no protocol and no store.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import trio

from acp_server.gateway.sessions.running_turn import PROMPT, Guest
from acp_server.gateway.sessions.shared_session import Room
from runtime.conversation.conversation import Conversation
from runtime.ports import (
    Client,
    ExitStatus,
    PermissionOption,
    PermissionOutcome,
    Question,
    TerminalCommand,
    TerminalOutput,
)
from runtime.values.errors import ToolError
from runtime.values.events import Event, ToolCallStarted, UserMessage
from schemas.transcript import PromptStep

Publish = Callable[[str, Event, str], None]
"""Gets the session's id, what happened there, and the turn's id, '' outside of one. Does not wait."""

AUDIENCE: ContextVar[Guest | None] = ContextVar("audience", default=None)
"""The one connection that is shown something old; None: what happens is for everybody."""


class RoomClient:
    """A session's client, whoever that is at the moment."""

    def __init__(self, room: Room, publish: Publish) -> None:
        self._room = room
        self._publish = publish

    async def emit(self, session_id: str, event: Event) -> None:
        """Waits for the slowest connection, for a while."""
        guest = AUDIENCE.get()
        if guest is None:
            self._publish(session_id, event, self._room.turn_id)
            await self._room.tell(event)
        elif not self._room.is_to_come(guest, event):
            await guest.tell(session_id, event)

    async def read_text_file(self, session_id: str, path: Path) -> str | None:
        client = self._client()
        return None if client is None else await client.read_text_file(session_id, path)

    async def write_text_file(self, session_id: str, path: Path, text: str) -> bool:
        client = self._client()
        return client is not None and await client.write_text_file(session_id, path, text)

    async def create_terminal(self, session_id: str, command: TerminalCommand) -> str | None:
        guest = self._room.asked()
        if guest is None:
            return None
        terminal_id = await guest.client.create_terminal(session_id, command)
        if terminal_id is not None:
            self._room.terminals[terminal_id] = guest
        return terminal_id

    async def terminal_output(self, session_id: str, terminal_id: str) -> TerminalOutput:
        return await self._owner(terminal_id).terminal_output(session_id, terminal_id)

    async def wait_for_exit(self, session_id: str, terminal_id: str) -> ExitStatus:
        return await self._owner(terminal_id).wait_for_exit(session_id, terminal_id)

    async def kill_terminal(self, session_id: str, terminal_id: str) -> None:
        if terminal_id in self._room.terminals:
            await self._owner(terminal_id).kill_terminal(session_id, terminal_id)

    async def release_terminal(self, session_id: str, terminal_id: str) -> None:
        """Its owner is kept: what it showed may be told once more."""
        if terminal_id in self._room.terminals:
            await self._owner(terminal_id).release_terminal(session_id, terminal_id)

    async def request_permission(
        self, session_id: str, call: ToolCallStarted, options: Sequence[PermissionOption]
    ) -> PermissionOutcome:
        """When the one who is asked goes away, the next one is asked, or the next to come."""
        return await self._room.ask(
            lambda client: client.request_permission(session_id, call, options), PermissionOutcome()
        )

    def takes_questions(self) -> bool:
        """Whether the one who opens the session does."""
        client = self._client()
        return client is not None and client.takes_questions()

    async def ask(self, session_id: str, question: Question) -> str | None:
        """Asked of one connection, as for a permission."""
        return await self._room.ask(lambda client: client.ask(session_id, question), None)

    def _client(self) -> Client | None:
        guest = self._room.asked()
        return None if guest is None else guest.client

    def _owner(self, terminal_id: str) -> Client:
        guest = self._room.terminals.get(terminal_id)
        if guest is None:
            raise ToolError("there is no such terminal")
        return guest.client


Parting = Callable[[Room], Awaitable[None]]
"""Sees to a session that nobody has open any more."""


class Hub:
    """Rooms by session. publish: hears of every event once. parting: runs when a room has emptied."""

    def __init__(self, nursery: trio.Nursery, publish: Publish, parting: Parting) -> None:
        self.nursery = nursery
        self._connections: set[Callable[[], None]] = set()
        self._publish = publish
        self._parting = parting
        self._rooms: dict[str, Room] = {}

    def room(self, session_id: str) -> Room:
        """The session's room, made when it is first asked for."""
        if session_id not in self._rooms:
            self._rooms[session_id] = Room(session_id, self._emptied)
        return self._rooms[session_id]

    async def catch_up(self, session_id: str, guest: Guest) -> None:
        """Show a connection what the running turn has shown so far; nothing where there is no room."""
        if session_id in self._rooms:
            await self._rooms[session_id].catch_up(guest)

    def leave(self, session_id: str, guest: Guest) -> None:
        if session_id in self._rooms:
            self._rooms[session_id].leave(guest)

    def turn_over(self, session_id: str, turn_id: str) -> None:
        if session_id in self._rooms:
            self._rooms[session_id].turn_over(turn_id)

    def client(self, session_id: str) -> RoomClient:
        """Who is told what happens in a session."""
        return RoomClient(self.room(session_id), self._publish)

    async def deliver(self, session_id: str, event: Event) -> None:
        """Give an event to the connections that have the session open, and to nobody else."""
        room = self._rooms.get(session_id)
        if room is not None:
            await room.tell(event)

    def watch_prompts(self, talk: Conversation) -> None:
        """Tell each prompt of an open session, when its turn begins, to all but the one who sent it."""

        async def on_prompt(step: PromptStep) -> None:
            prompt, room, recorder = PROMPT.get(), self.room(talk.session_id), talk.notes.recorder
            turn_id = recorder.turn_id if recorder is not None else ""
            room.turn_begins(turn_id)
            if prompt is not None:
                prompt.turn_id = turn_id
            for block in step.blocks:
                event = UserMessage(step.message_id, block)
                self._publish(talk.session_id, event, turn_id)
                await room.tell(event, besides=None if prompt is None else prompt.guest)

        talk.notes.on_prompt = on_prompt

    @contextmanager
    def connected(self, stop: Callable[[], None]) -> Iterator[None]:
        """A connection is there meanwhile. stop: ends it, when all are to end."""
        self._connections.add(stop)
        try:
            yield
        finally:
            self._connections.discard(stop)

    def stop(self) -> None:
        """End all connections."""
        for stop in tuple(self._connections):
            stop()

    def forget(self, room: Room) -> None:
        """Its session was closed and nobody is there, or waits to come in."""
        waiting = room.opening.statistics().tasks_waiting
        if room.empty and not waiting and self._rooms.get(room.session_id) is room:
            del self._rooms[room.session_id]

    def _emptied(self, room: Room) -> None:
        self.nursery.start_soon(self._parting, room)
