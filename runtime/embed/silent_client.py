"""What a client that only listens answers: it has no files of its own, no terminals and nobody to ask."""

from collections.abc import Sequence
from pathlib import Path

from runtime.ports import (
    ExitStatus,
    PermissionOption,
    PermissionOutcome,
    Question,
    TerminalCommand,
    TerminalOutput,
)
from runtime.values.errors import ToolError
from runtime.values.events import ToolCallStarted


class BareClient:
    """The part of `runtime.ports.Client` beside `emit`, for clients that offer none of it."""

    __slots__ = ()

    async def read_text_file(self, session_id: str, path: Path) -> str | None:
        """Use the disk."""
        return None

    async def write_text_file(self, session_id: str, path: Path, text: str) -> bool:
        """Use the disk."""
        return False

    async def create_terminal(self, session_id: str, command: TerminalCommand) -> str | None:
        """Run it here."""
        return None

    async def terminal_output(self, session_id: str, terminal_id: str) -> TerminalOutput:
        """Raises ToolError: there is no terminal."""
        raise ToolError("there is no such terminal")

    async def wait_for_exit(self, session_id: str, terminal_id: str) -> ExitStatus:
        """Raises ToolError: there is no terminal."""
        raise ToolError("there is no such terminal")

    async def kill_terminal(self, session_id: str, terminal_id: str) -> None:
        """There is none."""

    async def release_terminal(self, session_id: str, terminal_id: str) -> None:
        """There is none."""

    async def request_permission(
        self, session_id: str, call: ToolCallStarted, options: Sequence[PermissionOption]
    ) -> PermissionOutcome:
        """Nobody allows anything."""
        return PermissionOutcome()

    def takes_questions(self) -> bool:
        """Nobody is there."""
        return False

    async def ask(self, session_id: str, question: Question) -> str | None:
        """Nobody answers."""
        return None
