"""What the rest of the package sees of a connection: its tools as plain values, its calls, its end.

Knows no SDK: importing that takes a second, and only `connection` does.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from runtime.errors import ToolError
from runtime.mcp.settings import ServerSettings


class ServerTrouble(ToolError):
    """A server, or the way to it, failed; one line without any secret. lasting: trying again cannot help."""

    def __init__(self, message: str, *, lasting: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """A tool as its server describes it. looks: the server claims that it changes nothing."""

    name: str
    title: str
    description: str
    parameters: Mapping[str, object]
    looks: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """What a server has. resources: it holds documents beside its tools."""

    tools: tuple[RemoteTool, ...] = ()
    resources: bool = False


class Link(Protocol):
    """An open connection. Every method may raise ServerTrouble, and may be cancelled at any time."""

    @property
    def ended(self) -> str:
        """Why the connection is of no more use, one line; '' while it is."""
        ...

    async def offer(self) -> Offer:
        """What the server has now, all its tools included."""
        ...

    async def call(self, tool: str, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Run a tool; the result in the protocol's own JSON form. Cancelled, it tells the server so."""
        ...

    async def resources(self) -> tuple[Mapping[str, object], ...]:
        """All resources and templates of resources, in the protocol's JSON form."""
        ...

    async def read(self, uri: str) -> Mapping[str, object]:
        """A resource's contents, in the protocol's JSON form."""
        ...


Connect = Callable[[ServerSettings, Callable[[], None]], AbstractAsyncContextManager[Link]]
"""Opens a connection, to be entered and left in one task. The function is called when the tools have
changed or the connection has ended; it only takes note.

Entering raises ServerTrouble, within the server's connect_timeout. Leaving closes the connection and ends a
child process.
"""
