"""A place as the client's editor knows it: its spelling there, and its text with unsaved changes."""

from pathlib import Path

from runtime.ports import ToolContext
from runtime.tools.roots import Place

CLIENT_LIMIT = 8 * 1024 * 1024
"""A file larger than this, bytes, is not asked of the client, who would have to send all of it."""


def editor_path(place: Place, context: ToolContext) -> Path:
    """The absolute path under which the editor has the file."""
    if context.roots and place.root == context.roots[0]:
        # The editor knows its buffers under the folder's own spelling, links in it unresolved.
        return Path(context.cwd).joinpath(*place.parts)
    return place.path


async def editor_text(place: Place, size: int, context: ToolContext) -> str | None:
    """The text in the editor; None when the disk is to be used. size: of the file there, bytes."""
    if size > CLIENT_LIMIT:
        return None
    return await context.client.read_text_file(context.session_id, editor_path(place, context))
