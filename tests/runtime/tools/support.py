"""What the tests of the tools share: a client with editor buffers, and a context over a folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from runtime.events import Event
from runtime.ports import Tool, ToolContext


class Editor:
    """A client that holds unsaved buffers and remembers what it was asked."""

    def __init__(self, buffers: dict[Path, str] | None = None) -> None:
        self.buffers = buffers or {}
        self.asked: list[Path] = []

    async def emit(self, session_id: str, event: Event) -> None:
        raise AssertionError("a tool emits nothing")

    async def read_text_file(self, session_id: str, path: Path) -> str | None:
        self.asked.append(path)
        return self.buffers.get(path)


def context(cwd: Path, *others: Path, client: Editor | None = None) -> ToolContext:
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


def body(text: str) -> Sequence[str]:
    """The lines of a result without its bracketed last one."""
    return [line for line in text.split("\n") if not line.startswith("[")]
