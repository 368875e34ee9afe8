"""edit_file: exact replacements in a file, all or none, with a diff of what they do."""

from collections.abc import Mapping
from dataclasses import replace

from runtime.ports import ToolContext, ToolOutcome, ToolRequest, ToolView
from runtime.tools.arguments import Arguments, Parameter, check, tool_spec
from runtime.tools.files.change_file import Before, editor_path, look, put
from runtime.tools.files.replacements import Edit, file_diff, line_counts, replace_all
from runtime.tools.sandbox.path_requests import missing, path_request, path_view
from runtime.tools.sandbox.paths import in_thread, shorten
from runtime.values.events import ToolKind

_PARAMETERS = (
    Parameter("path", "string", required=True),
    Parameter(
        "edits",
        "list",
        required=True,
        items=(
            Parameter("old", "string", "Text as it stands in the file, at one place only.", required=True),
            Parameter("new", "string", required=True),
            Parameter("all", "boolean", "Replace at every place."),
        ),
    ),
)


class EditFile:
    """Edits inside the session's roots. Holds no state."""

    spec = tool_spec(
        "edit_file", "Replace exact text in a file. All edits are made, in order, or none.", _PARAMETERS
    )
    kind: ToolKind = "edit"

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        """`Edit src/app.py`."""
        return path_view("Edit", arguments, context)

    async def request(self, arguments: Mapping[str, object], context: ToolContext) -> ToolRequest:
        """Writes the file, with a diff. Raises ToolError for an edit that cannot be made: nobody is asked."""
        given = check(self.spec.name, _PARAMETERS, arguments)
        request = await path_request("write", given.text("path"), context)
        if request.outside:
            return request
        before, text, _ = await _prepared(given, context)
        diffs = file_diff(editor_path(before.place, context), before.text, text)
        return replace(request, diffs=diffs)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """Makes the edits. Raises ToolError: outside, missing, stale, or text that is not there just once."""
        given = check(self.spec.name, _PARAMETERS, arguments)
        async with context.seen.changing:
            before, text, places = await _prepared(given, context)
            await put(before, text, context)
        came, went = line_counts(before.text or "", text)
        where = f"{places} place{'s' * (places != 1)}"
        said = f"Edited {shorten(before.place.shown)}: {where}, +{came} -{went} lines."
        return ToolOutcome(said, diffs=file_diff(editor_path(before.place, context), before.text, text))


async def _prepared(given: Arguments, context: ToolContext) -> tuple[Before, str, int]:
    """The file, its text after the edits, and how many places they change."""
    raw = given.text("path")
    before = await look(raw, context)
    text = before.text
    if text is None:
        raise await in_thread(lambda _: missing(raw, before.place))
    edits = [Edit(row.text("old"), row.text("new"), row.flag("all", False)) for row in given.rows("edits")]
    made, places = await in_thread(lambda _: replace_all(text, edits))
    return before, made, places
