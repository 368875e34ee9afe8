"""A file before a change and the way of the new text into it: by the editor that has it open, else the disk.

Knows no tool. What the session has not seen in its present form is not overwritten.
"""

import os
import stat
from dataclasses import dataclass

import trio

from runtime.errors import ToolError
from runtime.ports import ToolContext
from runtime.seen import Stamp, digest
from runtime.tools.disk_write import put_file
from runtime.tools.editor import editor_path, editor_text
from runtime.tools.offload import in_thread
from runtime.tools.paths import shorten
from runtime.tools.replacing import like
from runtime.tools.roots import Place, locate
from runtime.tools.sensitive import hides_something
from runtime.tools.whole_text import WholeText, read_whole, to_bytes

_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class Before:
    """A file as it is. file: on the disk, buffer: in the editor; None where there is none."""

    place: Place
    file: WholeText | None
    buffer: str | None

    @property
    def text(self) -> str | None:
        """What stands in it; None for a new file."""
        if self.buffer is not None:
            return self.buffer
        return None if self.file is None else self.file.text

    @property
    def is_unsaved(self) -> bool:
        """Whether the editor has another text than the disk."""
        if self.buffer is None:
            return False
        return self.file is None or digest(self.buffer) != digest(self.file.text)


async def look(raw: str, context: ToolContext) -> Before:
    """The file that `raw` leads to. Raises ToolError: outside, unseen characters, special, binary, stale,
    read-only.
    """
    place, file = await in_thread(lambda _: _on_disk(raw, context))
    buffer = await editor_text(place, file.status.st_size if file else 0, context)
    if buffer is not None and file is not None:
        buffer = None if _is_garbled(buffer, file) else buffer.removeprefix("\ufeff" if file.mark else "")
    before = Before(place, file, buffer)
    _refuse_stale(before, context)
    return before


async def put(before: Before, text: str, context: ToolContext) -> None:
    """Make `text` what stands in the file. Raises ToolError; then the file is as it was.

    An editor that offers to write gets the text, except for a file whose encoding it may not keep.
    """
    place, file = before.place, before.file
    # An editor may hand over line feeds for a file that has other line endings.
    data = to_bytes(like(text, file.text) if file else text, place, file)
    path = editor_path(place, context)
    may_go_there = file is None or file.is_plain
    if may_go_there and await context.client.write_text_file(context.session_id, path, text):
        context.seen.note(place.path, Stamp(digest(text)))
        return
    if before.is_unsaved:
        raise ToolError(f"{shorten(place.shown)} has unsaved changes in the editor; save it there first")
    # Not given up half-way: a cancel waits for the moment that this takes.
    await trio.to_thread.run_sync(put_file, place, data, None if file is None else file.status)
    context.seen.note(place.path, Stamp(digest(text)))


def _on_disk(raw: str, context: ToolContext) -> tuple[Place, WholeText | None]:
    place = locate(raw, context)
    if raw.endswith(("/", os.sep)):
        raise ToolError(f"{shorten(place.shown)} is given as a folder; a file's path does not end in a slash")
    file = read_whole(place)
    if file is None and hides_something("/".join(place.parts)):
        raise ToolError(f"{shorten(place.shown)} holds characters that cannot be seen; choose another name")
    if file is not None and not file.status.st_mode & _WRITABLE:
        raise ToolError(f"{shorten(place.shown)} is read-only: nobody may write it, by its mode")
    return place, file


def _is_garbled(buffer: str, file: WholeText) -> bool:
    """Whether a client took a file of another encoding for UTF-8: what it gives is no text of anybody's."""
    return not file.is_plain and any(sign in buffer and sign not in file.text for sign in "\ufffd\0")


def _refuse_stale(before: Before, context: ToolContext) -> None:
    known, text = context.seen.get(before.place.path), before.text
    if known is None or text is None:
        return
    status = before.file.status if before.file and before.buffer is None else None
    now = Stamp(digest(text), status.st_size, status.st_mtime_ns) if status else Stamp(digest(text))
    if not known.still(now):
        raise ToolError(f"{shorten(before.place.shown)} changed since it was read here; read it again first")
