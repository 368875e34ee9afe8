"""How a call on one path is shown, from arguments that may be wrong. Never touches the disk."""

from collections.abc import Mapping

from runtime.errors import ToolError
from runtime.events import Location
from runtime.ports import ToolContext, ToolView
from runtime.tools.paths import lexical, shorten, shown


def path_view(verb: str, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
    """`Edit src/app.py`."""
    raw = arguments.get("path")
    try:
        path = lexical(raw, context.cwd) if isinstance(raw, str) else None
    except ToolError:
        path = None
    if path is None:
        return ToolView(f"{verb} a file")
    return ToolView(f"{verb} {shorten(shown(path, (context.cwd,)))}", (Location(str(path)),))
