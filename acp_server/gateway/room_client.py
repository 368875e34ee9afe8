"""`runtime.ports.Client` for a session of the gateway: told to all who have it open, asked of one of them.

Knows rooms and connections, no protocol. Where nobody is there, files are the disk's, and a question waits.
"""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path

from acp_server.gateway.guests import Guest
from acp_server.gateway.room import Room
from runtime.errors import ToolError
from runtime.events import Event, ToolCallStarted
from runtime.ports import (
    Client,
    ExitStatus,
    PermissionOption,
    PermissionOutcome,
    Question,
    TerminalCommand,
    TerminalOutput,
)

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
        """See the port. Waits for the slowest connection, for a while."""
        guest = AUDIENCE.get()
        if guest is None:
            self._publish(session_id, event, self._room.turn_id)
            await self._room.tell(event)
        elif not self._room.is_to_come(guest, event):
            await guest.tell(session_id, event)

    async def read_text_file(self, session_id: str, path: Path) -> str | None:
        """See the port."""
        client = self._client()
        return None if client is None else await client.read_text_file(session_id, path)

    async def write_text_file(self, session_id: str, path: Path, text: str) -> bool:
        """See the port."""
        client = self._client()
        return client is not None and await client.write_text_file(session_id, path, text)

    async def create_terminal(self, session_id: str, command: TerminalCommand) -> str | None:
        """See the port."""
        guest = self._room.asked()
        if guest is None:
            return None
        terminal_id = await guest.client.create_terminal(session_id, command)
        if terminal_id is not None:
            self._room.terminals[terminal_id] = guest
        return terminal_id

    async def terminal_output(self, session_id: str, terminal_id: str) -> TerminalOutput:
        """See the port."""
        return await self._owner(terminal_id).terminal_output(session_id, terminal_id)

    async def wait_for_exit(self, session_id: str, terminal_id: str) -> ExitStatus:
        """See the port."""
        return await self._owner(terminal_id).wait_for_exit(session_id, terminal_id)

    async def kill_terminal(self, session_id: str, terminal_id: str) -> None:
        """See the port."""
        if terminal_id in self._room.terminals:
            await self._owner(terminal_id).kill_terminal(session_id, terminal_id)

    async def release_terminal(self, session_id: str, terminal_id: str) -> None:
        """See the port. Its owner is kept: what it showed may be told once more."""
        if terminal_id in self._room.terminals:
            await self._owner(terminal_id).release_terminal(session_id, terminal_id)

    async def request_permission(
        self, session_id: str, call: ToolCallStarted, options: Sequence[PermissionOption]
    ) -> PermissionOutcome:
        """See the port. When the one who is asked goes away, the next one is asked, or the next to come."""
        return await self._room.ask(
            lambda client: client.request_permission(session_id, call, options), PermissionOutcome()
        )

    def takes_questions(self) -> bool:
        """Whether the one who opens the session does."""
        client = self._client()
        return client is not None and client.takes_questions()

    async def ask(self, session_id: str, question: Question) -> str | None:
        """See the port. As for a permission."""
        return await self._room.ask(lambda client: client.ask(session_id, question), None)

    def _client(self) -> Client | None:
        guest = self._room.asked()
        return None if guest is None else guest.client

    def _owner(self, terminal_id: str) -> Client:
        guest = self._room.terminals.get(terminal_id)
        if guest is None:
            raise ToolError("there is no such terminal")
        return guest.client
