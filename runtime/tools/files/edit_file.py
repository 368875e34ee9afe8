"""edit_file: replacements in a file, all or none, with a diff of what they do."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from runtime.ports import ToolContext, ToolOutcome, ToolRequest, ToolView
from runtime.tools.arguments import Arguments, Parameter, check, tool_spec, wrong_call
from runtime.tools.edits.apply_edits import Edit, Replaced, replace_all
from runtime.tools.edits.edit_errors import Miss
from runtime.tools.edits.edit_variants import without_escapes
from runtime.tools.files.change_file import Before, editor_path, look, put
from runtime.tools.files.line_diff import changed_lines, file_diff, line_counts
from runtime.tools.files.syntax import broken
from runtime.tools.sandbox.path_requests import missing, path_request, path_view
from runtime.tools.sandbox.paths import in_thread, shorten
from runtime.values.errors import ToolError
from runtime.values.events import ToolKind

_EDIT = (
    Parameter("old", "string", required=True, example="a = 1"),
    Parameter("new", "string", required=True, example="a = 2", may_be_empty=True),
    Parameter("all", "boolean"),
)
_WORDS = ("Text in the file, at one place only.", "", "Replace at every place.")
_PARAMETERS = (
    Parameter("path", "string", required=True, example="src/app.py"),
    *(replace(one, required=False, description=words) for one, words in zip(_EDIT, _WORDS, strict=True)),
    Parameter("edits", "list", "Instead of one: several.", items=_EDIT),
)


class EditFile:
    """Edits inside the session's roots. Holds no state."""

    spec = tool_spec(
        "edit_file", "Replace old by new in a file. Several edits are made in order, or none.", _PARAMETERS
    )
    kind: ToolKind = "edit"

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        """`Edit src/app.py`."""
        return path_view("Edit", arguments, context)

    async def request(self, arguments: Mapping[str, object], context: ToolContext) -> ToolRequest:
        """Writes the file, with a diff. Raises ToolError for an edit that cannot be made: nobody is asked."""
        given = check(self.spec.name, _PARAMETERS, arguments)
        edits = _edits(given)
        request = await path_request("write", given.text("path"), context)
        if request.outside:
            return request
        before, made = await _prepared(given.text("path"), edits, context)
        diffs = file_diff(editor_path(before.place, context), before.text, made.text)
        return replace(request, diffs=diffs)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """Makes the edits. Raises ToolError: outside, missing, stale, or text that is not there just once."""
        given = check(self.spec.name, _PARAMETERS, arguments)
        edits = _edits(given)
        async with context.seen.changing:
            before, made = await _prepared(given.text("path"), edits, context)
            await put(before, made.text, context)
        said = await in_thread(lambda _: _report(before, made))
        return ToolOutcome(said, diffs=file_diff(editor_path(before.place, context), before.text, made.text))


def _edits(given: Arguments) -> list[Edit]:
    rows = list(given.rows("edits"))
    if bool(rows) == ("old" in given.values):
        raise wrong_call("edit_file needs either old and new, or edits", _PARAMETERS)
    if not rows and "new" not in given.values:
        raise wrong_call("edit_file needs the argument new (a string)", _PARAMETERS)
    return [Edit(row.text("old"), row.text("new"), row.flag("all", False)) for row in rows or [given]]


def _made(name: str, text: str, edits: Sequence[Edit], *, again: bool) -> Replaced:
    """The edits to the letter; with what they seem to lack where the letter would break the file."""
    made = replace_all(text, edits, again=again)
    if not broken(name, text, made.text):
        return made
    escaped = [replace(edit, new=without_escapes(edit.new)) for edit in edits]
    for others, as_lines in ((edits, True), (escaped, False)):
        with suppress(ToolError):
            other = replace_all(text, others, as_lines=as_lines)
            if not broken(name, text, other.text):
                return other
    return made


def _report(before: Before, made: Replaced) -> str:
    """What was done, the changed lines as they stand now, and whether the file can still be read."""
    text = before.text or ""
    came, went = line_counts(text, made.text)
    where = f"{made.places} place{'s' * (made.places != 1)}"
    said = [f"Edited {shorten(before.place.shown)}: {where}, +{came} -{went} lines."]
    said += [f"[{note}]" for note in made.notes]
    said += [changed_lines(text, made.text)]
    wrong = broken(before.place.shown, text, made.text)
    said += [f"[the file is broken now: {wrong}]"] if wrong else []
    return "\n".join(said)


async def _prepared(raw: str, edits: Sequence[Edit], context: ToolContext) -> tuple[Before, Replaced]:
    """The file, and its text after the edits."""
    before = await look(raw, context)
    text, path = before.text, before.place.path
    if text is None:
        raise await in_thread(lambda _: missing(raw, before.place))
    again = context.seen.has_missed(path)
    try:
        made = await in_thread(lambda _: _made(before.place.shown, text, edits, again=again))
    except Miss:
        context.seen.note_miss(path, missed=True)
        raise
    context.seen.note_miss(path, missed=False)
    return before, made
