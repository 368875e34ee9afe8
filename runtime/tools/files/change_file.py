"""A file before a change, and the way of the new text into it: by the editor that has it open, else the disk.

What the session has not seen in its present form is not overwritten. On the disk another process sees the old
text or the new, never half: the new file takes the place of the old one, so links that lead to it go on
leading to it and its mode bits stay; another hard link to the old file keeps the old text, wherever it lies.
Knows no tool.
"""

import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import trio

from runtime.ports import ToolContext
from runtime.tools.files.encoding import WholeText, like, read_whole, to_bytes
from runtime.tools.sandbox.paths import in_thread, shorten
from runtime.tools.sandbox.roots import Place, explain, locate, not_a_file, opened_parent
from runtime.tools.sandbox.sensitive_files import hides_something
from runtime.values.errors import ToolError
from runtime.values.file_access import writing
from runtime.values.seen_files import Stamp, digest

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


_NEW = os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)


def put_file(place: Place, data: bytes, expected: os.stat_result | None) -> None:
    """Write it. expected: the status of the file that is replaced, None when there is none.

    Folders on the way are made. Raises ToolError, also when another file stands there by now.
    """
    if not place.parts:
        raise ToolError(not_a_file(place, stat.S_IFDIR))
    try:
        with opened_parent(place, make=expected is None) as (folder, name):
            _check(place, folder, name, expected)
            _replace(place, folder, name, data, expected)
    except OSError as error:
        raise ToolError(explain(place.shown, error, "written")) from error


def _replace(
    place: Place, folder: int | None, name: str, data: bytes, expected: os.stat_result | None
) -> None:
    # Beside the old one, so that it is on the same file system.
    new = os.path.join(os.path.dirname(name), f".{secrets.token_hex(8)}.new")
    # A mode of its own would close a new file to those whom the user's mask lets in.
    mode = 0o666 if expected is None else 0o600
    try:
        with writing(new, _NEW, mode, dir_fd=folder) as file:
            file.write(data)
            file.flush()
            _inherit(file.fileno(), expected)
            os.fsync(file.fileno())
        # As late as can be: what came to stand there meanwhile is not overwritten.
        _check(place, folder, name, expected)
        os.replace(new, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(new, dir_fd=folder)
        raise


def _check(place: Place, folder: int | None, name: str, expected: os.stat_result | None) -> None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        if expected is None:
            return
        raise ToolError(f"{shorten(place.shown)} went away meanwhile; look again") from None
    if not stat.S_ISREG(found.st_mode):
        raise ToolError(not_a_file(place, found.st_mode))
    if expected is None:
        raise ToolError(f"{shorten(place.shown)} was made by another program meanwhile; read it first")
    if _identity(found) != _identity(expected):
        raise ToolError(f"{shorten(place.shown)} changed meanwhile; read it again")


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _inherit(descriptor: int, expected: os.stat_result | None) -> None:
    """Owner and mode of the old file. The owner only where that is permitted; first, since it clears bits."""
    if expected is None or not hasattr(os, "fchmod"):
        return
    if hasattr(os, "fchown"):
        with suppress(OSError):
            os.fchown(descriptor, expected.st_uid, expected.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(expected.st_mode))


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
