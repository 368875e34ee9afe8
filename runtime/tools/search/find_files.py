"""find_files: files whose path matches a glob, the newest first. Names only; no file is opened."""

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import nlargest
from time import monotonic

from runtime.ports import ToolContext, ToolOutcome, ToolRequest, ToolView
from runtime.tools.arguments import Parameter, check, tool_spec
from runtime.tools.sandbox.ignore_files import Layer, ignored, layers_above, layers_of, translate
from runtime.tools.sandbox.path_requests import missing, path_request
from runtime.tools.sandbox.paths import in_thread, lexical, quote, relative, shorten, shown
from runtime.tools.sandbox.roots import Place, kind, locate, opened_folder, stat_place
from runtime.values.errors import ToolError
from runtime.values.events import Location, ToolKind

_SHOWN = 200
_LOOKED_AT = 500_000
_SECONDS = 20.0
_MAX_PATTERN = 1000

_PARAMETERS = (
    Parameter("pattern", "string", "Glob, e.g. *.py or src/**/*.ts.", required=True, example="*.py"),
    Parameter("path", "string", "Default: the working folder."),
)


class FindFiles:
    """Finds inside the session's roots. Holds no state."""

    spec = tool_spec(
        "find_files", "Find files by name, newest first. Ignored files are left out.", _PARAMETERS
    )
    kind: ToolKind = "search"

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        """`Find *.py in src`."""
        pattern, raw = arguments.get("pattern"), arguments.get("path")
        if not isinstance(pattern, str):
            return ToolView("Find files")
        title = f"Find {shorten(quote(pattern), 80)}"
        try:
            path = lexical(raw, context.cwd) if isinstance(raw, str) and raw else None
        except ToolError:
            path = None
        if path is None:
            return ToolView(title)
        return ToolView(f"{title} in {shorten(shown(path, (context.cwd,)))}", (Location(str(path)),))

    async def request(self, arguments: Mapping[str, object], context: ToolContext) -> ToolRequest:
        """Reads the folder."""
        given = check(self.spec.name, _PARAMETERS, arguments)
        return await path_request("read", given.text("path", "."), context)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """The paths. Raises ToolError: outside the roots, missing, not a folder, not a glob."""
        given = check(self.spec.name, _PARAMETERS, arguments)
        expression = _expression(given.text("pattern"))
        raw = given.text("path", ".")
        return ToolOutcome(await in_thread(lambda stopped: _find(raw, expression, context, stopped)))


@dataclass(slots=True)
class _Walk:
    """files: (time of the last change, path from the root). seen: entries looked at."""

    place: Place
    expression: re.Pattern[str]
    files: list[tuple[int, str]] = field(default_factory=list)
    seen: int = 0
    complete: bool = True


def _expression(pattern: str) -> re.Pattern[str]:
    if len(pattern) > _MAX_PATTERN:
        raise ToolError(f"pattern is too long ({len(pattern)} characters; at most {_MAX_PATTERN})")
    glob = pattern.removeprefix("./")
    if glob.startswith(("/", "../", "~")):
        raise ToolError("pattern is matched below path; give the folder there")
    anywhere = "" if "/" in glob else "(?:.*/)?"
    try:
        return re.compile(anywhere + translate(glob), re.DOTALL)
    except re.error:
        raise ToolError(f"pattern is no glob: {shorten(quote(pattern))}") from None


def _find(raw: str, expression: re.Pattern[str], context: ToolContext, stopped: Callable[[], bool]) -> str:
    place = locate(raw, context)
    status = stat_place(place)
    if status is None:
        raise missing(raw, place)
    if not stat.S_ISDIR(status.st_mode):
        raise ToolError(f"{shorten(place.shown)} is {kind(status.st_mode)}, not a folder")
    walk = _Walk(place, expression)
    until = monotonic() + _SECONDS
    for _ in _folders(walk):
        if stopped() or monotonic() > until or walk.seen > _LOOKED_AT:
            walk.complete = False
            break
    return _report(walk, context)


def _folders(walk: _Walk) -> Iterator[None]:
    """One step a folder, so that the caller can stop between them."""
    root = str(walk.place.root)
    pending = [(walk.place.parts, layers_above(root, walk.place.parts))]
    while pending:
        parts, above = pending.pop()
        layers = above + layers_of(root, "".join(f"{part}/" for part in parts))
        pending += [((*parts, name), layers) for name in _look(walk, parts, layers)]
        yield


def _look(walk: _Walk, parts: tuple[str, ...], layers: list[Layer]) -> list[str]:
    """Keep what matches in one folder; gives the names of the folders to enter."""
    deeper: list[str] = []
    prefix = "".join(f"{part}/" for part in parts)
    skipped = len("".join(f"{part}/" for part in walk.place.parts))
    try:
        with opened_folder(Place(walk.place.root, parts, "")) as handle, os.scandir(handle) as entries:
            for entry in entries:
                walk.seen += 1
                path, is_folder = prefix + entry.name, entry.is_dir(follow_symlinks=False)
                if entry.name == ".git" or ignored(layers, path, is_folder=is_folder):
                    continue
                if is_folder:
                    deeper.append(entry.name)
                elif entry.is_file(follow_symlinks=False) and walk.expression.match(path, skipped):
                    walk.files.append((entry.stat(follow_symlinks=False).st_mtime_ns, path))
    except OSError:
        # A folder that went away or may not be read holds nothing that could be named.
        return deeper
    return deeper


def _report(walk: _Walk, context: ToolContext) -> str:
    newest = nlargest(_SHOWN, walk.files, key=lambda pair: (pair[0], pair[1]))
    lines = [quote(relative(walk.place.root / path, context.roots)) for _, path in newest]
    notes = [] if lines else ["no file matches"]
    if len(walk.files) > _SHOWN:
        notes.append(f"the newest {_SHOWN} of {len(walk.files):,}; narrow pattern or path")
    if not walk.complete:
        notes.append(f"not all was searched ({walk.seen:,} entries); narrow the path")
    return "\n".join([*lines, *([f"[{'; '.join(notes)}]"] if notes else [])])
