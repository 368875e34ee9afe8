"""read_file: a text file, or a range of its lines, as the editor has it or else from the disk.

Each line has its number before it: models that see them find the place again. Where they copy them along into
an edit, that is understood. What else is not the file's own stands in one last line in square brackets.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from runtime.ports import ToolContext, ToolOutcome, ToolRequest, ToolView
from runtime.tools.arguments import Arguments, Parameter, check, tool_spec
from runtime.tools.edits.line_numbers import numbered
from runtime.tools.files import line_ranges
from runtime.tools.files.change_file import editor_text
from runtime.tools.files.line_ranges import Window, take
from runtime.tools.sandbox.path_requests import look, missing, path_request
from runtime.tools.sandbox.paths import in_thread, lexical, shorten, shown
from runtime.tools.sandbox.roots import Place, locate
from runtime.values.errors import ToolError
from runtime.values.events import Location, ToolKind
from runtime.values.seen_files import Stamp, digest

_PARAMETERS = (
    Parameter("path", "string", required=True, example="src/app.py"),
    Parameter("line", "integer", "First line. Default: 1.", minimum=1),
    Parameter("limit", "integer", "How many lines.", minimum=1),
)


class ReadFile:
    """Reads inside the session's roots. Holds no state."""

    spec = tool_spec(
        "read_file",
        "Read a text file. Not the file's own: `NUMBER|` before each line, a last line in [brackets].",
        _PARAMETERS,
    )
    kind: ToolKind = "read"

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        """`Read src/app.py`, with the line when one is given."""
        raw, line, limit = arguments.get("path"), arguments.get("line"), arguments.get("limit")
        if not isinstance(raw, str):
            return ToolView("Read a file")
        try:
            path = lexical(raw, context.cwd)
        except ToolError:
            return ToolView("Read a file")
        first = line if isinstance(line, int) and not isinstance(line, bool) and line >= 1 else None
        title = f"Read {shorten(shown(path, (context.cwd,)))}"
        if first is not None:
            title += f":{first}"
            if isinstance(limit, int) and limit > 1:
                title += f"-{first + limit - 1}"
        return ToolView(title, (Location(str(path), first),))

    async def request(self, arguments: Mapping[str, object], context: ToolContext) -> ToolRequest:
        """Reads the file."""
        return await path_request("read", check(self.spec.name, _PARAMETERS, arguments).text("path"), context)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """The text. Raises ToolError: outside the roots, missing, a folder, binary, unreadable."""
        given = check(self.spec.name, _PARAMETERS, arguments)
        raw, first = given.text("path"), given.integer("line", 1)
        count = given.integer("limit", 0) or None
        place, file = await look(raw, context, lambda plain: _look(raw, context, plain))
        buffer = await editor_text(place, file.size if file else 0, context)
        if buffer is not None:
            context.seen.note(place.path, Stamp(digest(buffer)))
            window = take((buffer,), first=first, count=count, cap=line_ranges.MAX_TEXT, count_rest=True)
            return ToolOutcome(_report(place, window, ()))
        if file is None:
            raise await in_thread(lambda _: missing(raw, place))
        reading = await _from_disk(given, place, file, context)
        context.seen.note(place.path, reading.stamp)
        return ToolOutcome(_report(place, reading.window, reading.notes))


def _look(raw: str, context: ToolContext, plain: Path | None) -> tuple[Place, line_ranges.TextFile | None]:
    place = locate(raw, context, plain)
    return place, line_ranges.look(place)


async def _from_disk(
    given: Arguments, place: Place, file: line_ranges.TextFile, context: ToolContext
) -> line_ranges.Reading:
    raw, first = given.text("path"), given.integer("line", 1)
    count = given.integer("limit", 0) or None
    if file.is_whole:
        return line_ranges.read_sample(file, first, count)
    try:
        return await in_thread(lambda stopped: line_ranges.read(place, file, first, count, stopped))
    except FileNotFoundError:
        raise await in_thread(lambda _: missing(raw, locate(raw, context))) from None


def _report(place: Place, window: Window, notes: Sequence[str]) -> str:
    said = [*_range_notes(place, window), *notes]
    text = numbered(window.text, window.first)
    if not said:
        return text
    gap = "\n" if text and not text.endswith("\n") else ""
    return f"{text}{gap}[{'; '.join(said)}]"


def _range_notes(place: Place, window: Window) -> list[str]:
    total, first, last = window.total, window.first, window.last
    if last < first:
        if first == 1:
            return ["the file is empty"]
        raise ToolError(f"{shorten(place.shown)} has {total} lines; line {first} is past its end")
    said = []
    if window.cut:
        size = f"{line_ranges.MAX_TEXT:,} characters"
        said.append(f"line {last} is longer than {size} and was cut there; search_text can look for the rest")
    if first > 1 or window.more or window.cut:
        said.append(f"lines {first}-{last}" + (f" of {total}" if total is not None else ""))
    if window.more and not (window.cut and total == last):
        said.append(f"read on with line={last + 1}")
    return said
