"""What the core needs from outside: protocols and the small values they exchange. Knows no implementation.

Every `async` method may block and is a trio checkpoint; all of them may be cancelled.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from runtime.history.rows.tool_rounds import Iteration, TrimView
from runtime.values.events import Event, FileDiff, Location, ToolCallStarted, ToolKind
from runtime.values.model import ModelRequest, Part
from runtime.values.rows import ToolSpec
from runtime.values.seen_files import SeenFiles

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


# ---------------------------------------------------------------- the running turn's own history


class ContextTrimmer(Protocol):
    """Bounds what a running turn's tool loop shows the model. `name` is told to the client at each trim."""

    name: str

    async def trim(self, history: Sequence[Iteration], prompt: str) -> TrimView:
        """The rounds to send, in order: of those given, the newest one among them, others taken out.

        Results may have other texts; calls are as they were. Changes nothing that it was given. prompt: the
        turn's. What it raises, or a view that is none of these, leaves everything as it was and is reported.
        """
        ...


# ---------------------------------------------------------------- client


PermissionKind = Literal["allow_once", "allow_always", "reject_once", "reject_always"]


@dataclass(frozen=True, slots=True)
class PermissionOption:
    """One answer on offer. option_id: unique among them. name: what the person reads."""

    option_id: str
    name: str
    kind: PermissionKind


@dataclass(frozen=True, slots=True)
class PermissionOutcome:
    """What became of a question. chosen None: nobody allowed anything.

    cancelled: the person stopped the whole turn; else there was no answer that can be understood.
    """

    chosen: PermissionOption | None = None
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class TerminalCommand:
    """A program to run in a terminal of the client. output_limit: bytes it keeps, the newest ones."""

    command: str
    arguments: tuple[str, ...]
    cwd: Path
    output_limit: int


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """How a process ended. Both are None when that is not known."""

    code: int | None = None
    signal: str | None = None


@dataclass(frozen=True, slots=True)
class TerminalOutput:
    """What a terminal shows. truncated: its beginning is gone. exit None: the process still runs."""

    text: str
    truncated: bool = False
    exit: ExitStatus | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What the model wants to know. choices: to pick from, () for an answer in the person's own words."""

    text: str
    choices: tuple[str, ...] = ()


class Client(Protocol):
    """The one who watches a session. Values go out in the order in which they were emitted."""

    async def emit(self, session_id: str, event: Event) -> None:
        """Hand over an event. Waits only when the client is far behind (back pressure)."""
        ...

    async def read_text_file(self, session_id: str, path: Path) -> str | None:
        """The file as the editor has it, unsaved changes included. None: use the disk."""
        ...

    async def write_text_file(self, session_id: str, path: Path, text: str) -> bool:
        """Write through the editor. False: use the disk. Raises ToolError when the editor refused."""
        ...

    async def create_terminal(self, session_id: str, command: TerminalCommand) -> str | None:
        """Start it in a terminal; gives its id. None: run it here. Raises ToolError when refused."""
        ...

    async def terminal_output(self, session_id: str, terminal_id: str) -> TerminalOutput:
        """What it shows now. Raises ToolError."""
        ...

    async def wait_for_exit(self, session_id: str, terminal_id: str) -> ExitStatus:
        """Waits until its process ends. Raises ToolError."""
        ...

    async def kill_terminal(self, session_id: str, terminal_id: str) -> None:
        """End its process; the output stays. Never raises."""
        ...

    async def release_terminal(self, session_id: str, terminal_id: str) -> None:
        """Give it up, its process killed; what is shown of it stays. Never raises."""
        ...

    async def request_permission(
        self, session_id: str, call: ToolCallStarted, options: Sequence[PermissionOption]
    ) -> PermissionOutcome:
        """Ask the person, who sees the call. Waits for as long as it takes; never raises."""
        ...

    def takes_questions(self) -> bool:
        """Whether the model's questions can be put to the person."""
        ...

    async def ask(self, session_id: str, question: Question) -> str | None:
        """The person's answer, None for none. Waits for as long as it takes; never raises."""
        ...


# ---------------------------------------------------------------- tools


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """What a running call shows so far; replaces what it showed before. text: the newest part of it."""

    text: str = ""
    diffs: tuple[FileDiff, ...] = ()
    terminal_id: str = ""


@dataclass(frozen=True, slots=True)
class Recalled:
    """A place in a session's transcript. turn: the number of its prompt, from 1. what: `prompt`, `answer`
    …
    """

    turn: int
    what: str
    text: str


class Recall(Protocol):
    """A session's whole transcript, for the model to look things up in. Changes nothing. Raises
    StoreError.
    """

    async def search(self, query: str, limit: int) -> Sequence[Recalled]:
        """Places in which the words stand, best first; `text` is the part around them."""
        ...

    async def turn(self, number: int) -> str | None:
        """All that was said and done in a turn, tool results in full; None when there is none."""
        ...


async def shown_to_nobody(progress: ToolProgress) -> None:
    """The progress of a call that nobody watches."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may touch. roots: cwd first, then additional directories, all resolved.

    progress: tells what a running call shows. granted: resolved paths outside the roots that this call
    may touch. judged: where the call's paths led to when it was allowed, () for a call that nobody judged.
    seen: what the session knows of files. recall: its transcript, None where there is none.
    set_goal: makes a text the session's goal, False when it is already; None outside a turn.
    """

    session_id: str
    cwd: Path
    roots: tuple[Path, ...]
    client: Client
    progress: Callable[[ToolProgress], Awaitable[None]] = shown_to_nobody
    granted: tuple[Path, ...] = ()
    judged: tuple[Path, ...] = ()
    seen: SeenFiles = field(default_factory=SeenFiles, compare=False, repr=False)
    recall: Recall | None = field(default=None, compare=False, repr=False)
    set_goal: Callable[[str], Awaitable[bool]] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolView:
    """How a call is shown before it runs."""

    title: str
    locations: tuple[Location, ...] = ()


ToolAction = Literal["read", "write", "execute", "fetch", "plan", "switch_mode", "other"]


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """What a call wants to do, told before it runs, for whoever decides whether it may.

    subject: the command line, the address, or the path as a model should write it. paths: what would be
    touched, links followed. outside: some of it is not below a root; to run it all the same, the paths go
    into the context's `granted`. secret: some of it is a file that may hold secrets, by its name or an
    ignore rule. risk: a sentence why a person should look even where such calls are free, '' for none.
    looks: the tool itself says that it changes nothing. diffs: what would change.
    """

    action: ToolAction
    subject: str
    paths: tuple[Path, ...] = ()
    outside: bool = False
    secret: bool = False
    risk: str = ""
    diffs: tuple[FileDiff, ...] = ()
    looks: bool = False


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What a tool gave. text: for the model, uncapped (the caller cuts). shown: for the person, '' = text.

    diffs: what it changed. terminal_id: the client's terminal that shows the text already, '' for none.
    """

    text: str
    failed: bool = False
    shown: str = ""
    diffs: tuple[FileDiff, ...] = ()
    terminal_id: str = ""


class Tool(Protocol):
    """One tool. `spec.parameters` is validated by the tool itself; bad arguments raise ToolError."""

    spec: ToolSpec
    kind: ToolKind

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        """Title and locations for a call, from arguments that may be wrong: never raises."""
        ...

    async def request(self, arguments: Mapping[str, object], context: ToolContext) -> ToolRequest:
        """What the call would do, for the permission. Raises ToolError for arguments that cannot be run."""
        ...

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """Do it. Raises ToolError with a text for the model; any other exception is a bug."""
        ...
