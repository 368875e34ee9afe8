"""What the core needs from outside: protocols and the small values they exchange. Knows no implementation.

Every `async` method may block and is a trio checkpoint; all of them may be cancelled.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

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


# ---------------------------------------------------------------- store


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A session's head. Times are ISO 8601 UTC. state: small JSON object owned by the session (its cut)."""

    session_id: str
    cwd: str
    created_at: str
    updated_at: str
    title: str | None = None
    state: str = "{}"


class HeadChange(NamedTuple):
    """A change of a session's head; None leaves a field as it is. updated_at: ISO 8601 UTC."""

    updated_at: str | None = None
    title: str | None = None
    state: str | None = None


UNCHANGED = HeadChange()


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """One line of a transcript. key: the durable step's key, unique in the session. payload: JSON bytes.

    seq is given by the store: 1, 2, 3, … in a session; 0 before it was stored.
    """

    turn_id: str
    key: str
    kind: str
    payload: bytes
    seq: int = 0


@dataclass(frozen=True, slots=True)
class SessionPage:
    """A page of sessions, newest change first. next_cursor: opaque, None on the last page."""

    sessions: tuple[SessionRecord, ...]
    next_cursor: str | None


class Store(Protocol):
    """Transcripts, append-only. What a method acknowledged survives kill -9. Raises StoreError."""

    async def create_session(self, record: SessionRecord) -> None:
        """A new session. The id must be free."""
        ...

    async def session(self, session_id: str) -> SessionRecord | None:
        """The session's head, or None."""
        ...

    async def list_sessions(self, *, cwd: str | None, cursor: str | None, limit: int) -> SessionPage:
        """Newest change first; `cwd` filters exactly. Raises InvalidParams on a cursor that is not ours."""
        ...

    async def append(
        self, session_id: str, entries: Sequence[StoredEntry], *, head: HeadChange = UNCHANGED
    ) -> None:
        """Commit entries (and the head's change, if given) in one transaction; durable on return.

        A key that is already there is left as it is (a retried commit is harmless).
        """
        ...

    async def entries(self, session_id: str, *, after: int = 0, limit: int = 500) -> list[StoredEntry]:
        """Entries with seq > after, in order, at most `limit`."""
        ...

    async def position(self, session_id: str, key: str) -> int | None:
        """The seq of the entry with that key, or None."""
        ...

    async def aclose(self) -> None:
        """Flush and close."""
        ...
