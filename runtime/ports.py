"""What the core needs from outside: protocols and the small values they exchange. Knows no implementation.

Every `async` method may block and is a trio checkpoint; all of them may be cancelled.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from runtime.events import Event, Location, ToolKind
from runtime.model import ModelRequest, Part
from runtime.rows import ToolSpec

# ---------------------------------------------------------------- provider


class Provider(Protocol):
    """A model behind some API. `name` is the configured provider's name."""

    name: str

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[AsyncIterator[Sequence[Part]]]:
        """Send the request. Yields batches: all parts that arrived in one read.

        Raises ProviderError on entry or while iterating; a stream that ends without a StopPart raises
        ProviderError(kind=STREAM_DROPPED). Leaving the context closes the connection at once.
        """
        ...

    async def aclose(self) -> None:
        """Close pooled connections."""
        ...


# ---------------------------------------------------------------- client


class Client(Protocol):
    """The one who watches a session. Values go out in the order in which they were emitted."""

    async def emit(self, session_id: str, event: Event) -> None:
        """Hand over an event. Waits only when the client is far behind (back pressure)."""
        ...

    async def read_text_file(self, session_id: str, path: Path) -> str | None:
        """The file as the editor has it, unsaved changes included. None: use the disk."""
        ...


# ---------------------------------------------------------------- tools


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may touch. roots: cwd first, then additional directories, all resolved."""

    session_id: str
    cwd: Path
    roots: tuple[Path, ...]
    client: Client


@dataclass(frozen=True, slots=True)
class ToolView:
    """How a call is shown before it runs."""

    title: str
    locations: tuple[Location, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What a tool gave. text: for the model, uncapped (the caller cuts). shown: for the person, '' = text."""

    text: str
    failed: bool = False
    shown: str = ""


class Tool(Protocol):
    """One tool. `spec.parameters` is validated by the tool itself; bad arguments raise ToolError."""

    spec: ToolSpec
    kind: ToolKind

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        """Title and locations for a call, from arguments that may be wrong: never raises."""
        ...

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """Do it. Raises ToolError with a text for the model; any other exception is a bug."""
        ...
