"""list_dir: what is in a folder, one path a line, links never followed. Knows the disk by its names alone."""

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from runtime.ports import ToolContext, ToolOutcome, ToolRequest, ToolView
from runtime.tools.arguments import Parameter, check, tool_spec
from runtime.tools.sandbox.path_requests import missing, path_request
from runtime.tools.sandbox.paths import in_thread, lexical, quote, quote_folder, relative, shorten, shown
from runtime.tools.sandbox.roots import Place, explain, kind, locate, opened_folder, stat_place
from runtime.values.errors import ToolError
from runtime.values.events import Location, ToolKind

_SHOWN = 500
"""Most lines given in one call."""
_COUNTED = 20_000
"""Most entries looked at in one call, in all folders together."""
_CLOSED = frozenset({".git"})
"""Folders that are named and never entered on the way."""

_PARAMETERS = (
    Parameter("path", "string", "Default: the working folder."),
    Parameter("depth", "integer", "Levels down. Default: 1.", minimum=1, maximum=5),
)


class ListDir:
    """Lists inside the session's roots. Holds no state."""

    spec = tool_spec(
        "list_dir",
        "List a folder: folders end with a slash, files have their size.",
        _PARAMETERS,
    )
    kind: ToolKind = "read"

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        """`List src`."""
        raw = arguments.get("path")
        try:
            path = lexical(raw if isinstance(raw, str) and raw else ".", context.cwd)
        except ToolError:
            return ToolView("List a folder")
        return ToolView(f"List {shorten(shown(path, (context.cwd,)))}", (Location(str(path)),))

    async def request(self, arguments: Mapping[str, object], context: ToolContext) -> ToolRequest:
        """Reads the folder."""
        given = check(self.spec.name, _PARAMETERS, arguments)
        return await path_request("read", given.text("path", "."), context)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """The listing. Raises ToolError: outside the roots, missing, not a folder, unreadable."""
        given = check(self.spec.name, _PARAMETERS, arguments)
        raw, depth = given.text("path", "."), given.integer("depth", 1)
        return ToolOutcome(await in_thread(lambda stopped: _list(raw, depth, context, stopped)))


@dataclass(slots=True)
class _Listing:
    """What was found so far, level by level, so that a cut leaves out the deepest first.

    lines: (names from the root, line). shown: entries that have a line. seen: entries looked at.
    """

    lines: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    shown: int = 0
    seen: int = 0
    complete: bool = True


def _list(raw: str, depth: int, context: ToolContext, stopped: Callable[[], bool]) -> str:
    place = locate(raw, context)
    _refuse_all_but_folders(raw, place)
    found = _Listing()
    level = [place]
    for step in range(depth):
        deeper: list[Place] = []
        for folder in level:
            if stopped():
                break
            deeper += _one(folder, context, found, is_top=step == 0)
        level = deeper
    return _report(place, found)


def _refuse_all_but_folders(raw: str, place: Place) -> None:
    status = stat_place(place)
    if status is None:
        raise missing(raw, place)
    if stat.S_ISREG(status.st_mode):
        raise ToolError(f"{shorten(place.shown)} is a file; use read_file to read it")
    if not stat.S_ISDIR(status.st_mode):
        raise ToolError(f"{shorten(place.shown)} is {kind(status.st_mode)}, not a folder")


def _one(folder: Place, context: ToolContext, found: _Listing, *, is_top: bool) -> list[Place]:
    """Add the entries of one folder; gives the folders to enter next."""
    deeper: list[Place] = []
    try:
        with opened_folder(folder) as handle:
            for entry in _entries(handle, found):
                below = (*folder.parts, entry.name)
                path = relative(folder.path / entry.name, context.roots)
                if found.shown < _SHOWN:
                    found.lines.append((below, _line(entry, path, handle)))
                    found.shown += 1
                if entry.is_dir(follow_symlinks=False) and entry.name not in _CLOSED:
                    deeper.append(Place(folder.root, below, quote(path)))
    except OSError as error:
        if is_top:
            raise ToolError(explain(folder.shown, error)) from error
        if len(found.lines) < 2 * _SHOWN:
            found.lines.append(((*folder.parts, ""), f"[{explain(folder.shown, error)}]"))
    return deeper


def _entries(handle: int | str, found: _Listing) -> list[os.DirEntry[str]]:
    entries: list[os.DirEntry[str]] = []
    with os.scandir(handle) as scan:
        for entry in scan:
            if found.seen >= _COUNTED:
                found.complete = False
                break
            found.seen += 1
            entries.append(entry)
    return sorted(entries, key=lambda entry: entry.name)


def _line(entry: os.DirEntry[str], path: str, handle: int | str) -> str:
    try:
        if entry.is_symlink():
            return f"{quote(path)} -> {quote(_target(entry.name, handle))}"
        if entry.is_dir(follow_symlinks=False):
            return quote_folder(path)
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return f"{quote(path)}  (went away)"
    if stat.S_ISREG(status.st_mode):
        return f"{quote(path)}  {status.st_size:,} bytes"
    return f"{quote(path)}  ({kind(status.st_mode)})"


def _target(name: str, handle: int | str) -> str:
    if isinstance(handle, int):
        return os.readlink(name, dir_fd=handle)
    return os.readlink(os.path.join(handle, name))


def _report(place: Place, found: _Listing) -> str:
    lines = [line for _, line in sorted(found.lines, key=lambda pair: pair[0])]
    if not lines:
        return f"[{shorten(place.shown)} is empty]"
    more = found.seen - found.shown
    if more or not found.complete:
        count = f"{more:,} more" if found.complete else f"{more:,} more, and others that were not counted"
        lines.append(f"[{count}; list a folder below, or use a smaller depth]")
    return "\n".join(lines)
