"""write_file: a new file, or one whose text is replaced as a whole, with a diff of what that does."""

from collections.abc import Mapping
from dataclasses import replace

from runtime.ports import ToolContext, ToolOutcome, ToolRequest, ToolView
from runtime.tools.arguments import Arguments, Parameter, check, tool_spec
from runtime.tools.files.change_file import Before, editor_path, look, put
from runtime.tools.files.encoding import like
from runtime.tools.files.line_diff import file_diff
from runtime.tools.files.syntax import broken
from runtime.tools.sandbox.path_requests import path_request, path_view
from runtime.tools.sandbox.paths import in_thread, shorten
from runtime.values.events import FileDiff, ToolKind

_PARAMETERS = (
    Parameter("path", "string", required=True, example="src/app.py"),
    Parameter("content", "string", required=True),
)


class WriteFile:
    """Writes inside the session's roots. Holds no state."""

    spec = tool_spec("write_file", "Create or overwrite a text file.", _PARAMETERS)
    kind: ToolKind = "edit"

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        """`Write src/app.py`."""
        return path_view("Write", arguments, context)

    async def request(self, arguments: Mapping[str, object], context: ToolContext) -> ToolRequest:
        """Writes the file, with a diff. Raises ToolError for what cannot be written."""
        given = check(self.spec.name, _PARAMETERS, arguments)
        request = await path_request("write", given.text("path"), context)
        if request.outside:
            return request
        before, text = await _prepared(given, context)
        return replace(request, diffs=_diff(before, text, context))

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """Writes it, making missing folders. Raises ToolError: outside, a folder, special, binary, stale."""
        given = check(self.spec.name, _PARAMETERS, arguments)
        async with context.seen.changing:
            before, text = await _prepared(given, context)
            changes = before.text != text or before.is_unsaved
            if changes:
                await put(before, text, context)
        shown, lines = shorten(before.place.shown), len(text.splitlines())
        size = f"{lines} line{'s' * (lines != 1)}"
        if not changes:
            return ToolOutcome(f"{shown} has this text already ({size}); nothing changed.")
        done = "Created" if before.text is None else "Overwrote"
        wrong = await in_thread(lambda _: broken(before.place.shown, before.text, text))
        said = f"{done} {shown}, {size}." + (f"\n[the file is broken: {wrong}]" if wrong else "")
        return ToolOutcome(said, diffs=_diff(before, text, context))


async def _prepared(given: Arguments, context: ToolContext) -> tuple[Before, str]:
    before = await look(given.text("path"), context)
    # The endings of a file that is overwritten stay: a model writes line feeds whatever it has.
    return before, like(given.text("content"), before.text or "")


def _diff(before: Before, text: str, context: ToolContext) -> tuple[FileDiff, ...]:
    return file_diff(editor_path(before.place, context), before.text, text)
