"""What the tests of the tools share: a client with editor buffers, and a context over a folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import trio

from runtime.embed.silent_client import BareClient
from runtime.ports import Client, ExitStatus, TerminalCommand, TerminalOutput, Tool, ToolContext, ToolProgress
from runtime.values.errors import ToolError
from runtime.values.events import Event, PlanChanged


class Editor(BareClient):
    """A client that holds unsaved buffers and remembers what it was asked.

    writes: it takes texts, into its buffers and onto the disk as an editor that saves. refuses: it does not.
    """

    def __init__(
        self, buffers: dict[Path, str] | None = None, *, writes: bool = False, refuses: bool = False
    ) -> None:
        self.buffers = buffers or {}
        self.writes = writes
        self.refuses = refuses
        self.asked: list[Path] = []
        self.written: list[tuple[Path, str]] = []
        self.plans: list[PlanChanged] = []

    async def emit(self, session_id: str, event: Event) -> None:
        assert isinstance(event, PlanChanged), "a tool emits nothing else"
        self.plans.append(event)

    async def read_text_file(self, session_id: str, path: Path) -> str | None:
        self.asked.append(path)
        return self.buffers.get(path)

    async def write_text_file(self, session_id: str, path: Path, text: str) -> bool:
        if self.refuses:
            raise ToolError("the editor would not write the file: denied")
        if self.writes:
            self.written.append((path, text))
            self.buffers[path] = text
        return self.writes


class Terminals(BareClient):
    """A client with terminals that show `output` and end with `status`; None: only when they are killed."""

    def __init__(self, output: TerminalOutput, status: ExitStatus | None = None) -> None:
        self.output = output
        self.status = status
        self.commands: list[TerminalCommand] = []
        self.calls: list[str] = []
        self._killed = trio.Event()

    async def emit(self, session_id: str, event: Event) -> None:
        raise AssertionError("a tool emits nothing")

    async def create_terminal(self, session_id: str, command: TerminalCommand) -> str | None:
        self.commands.append(command)
        return "term-1"

    async def terminal_output(self, session_id: str, terminal_id: str) -> TerminalOutput:
        self.calls.append("output")
        return self.output

    async def wait_for_exit(self, session_id: str, terminal_id: str) -> ExitStatus:
        self.calls.append("wait")
        if self.status is None:
            await self._killed.wait()
        return self.status or ExitStatus(None, "SIGKILL")

    async def kill_terminal(self, session_id: str, terminal_id: str) -> None:
        self.calls.append("kill")
        self._killed.set()

    async def release_terminal(self, session_id: str, terminal_id: str) -> None:
        self.calls.append("release")


class Watcher:
    """Keeps what a running call showed. seen: set with the first of it."""

    def __init__(self) -> None:
        self.shown: list[ToolProgress] = []
        self.seen = trio.Event()

    async def __call__(self, progress: ToolProgress) -> None:
        self.shown.append(progress)
        self.seen.set()


def context(cwd: Path, *others: Path, client: Client | None = None) -> ToolContext:
    """A session in `cwd`, its roots resolved as the contract asks."""
    roots = tuple(Path(folder).resolve() for folder in (cwd, *others))
    return ToolContext("session", cwd, roots, client or Editor())


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Make files, and the folders they need."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def write_sparse(path: Path, beginning: bytes, size: int) -> None:
    """A file of `size` bytes that takes up hardly any disk: a beginning, and NULs."""
    with open(path, "wb") as file:
        file.write(beginning)
        file.truncate(size)


async def text_of(tool: Tool, where: ToolContext, **arguments: object) -> str:
    """What the tool gives the model."""
    return (await tool.run(arguments, where)).text


def counted(content: str, first: int = 1) -> str:
    """A file's lines as `read_file` shows them."""
    lines = content.replace("\n", "\n\0").split("\0")
    return "".join(f"{number}|{line}" for number, line in enumerate(lines, first) if line)


def body(text: str) -> Sequence[str]:
    """The lines of a result without its bracketed last one."""
    return [line for line in text.split("\n") if not line.startswith("[")]
