"""A file on the disk replaced as a whole, or made: another process sees the old text or the new, never half.

The new file takes the place of the old one, so links that lead to it go on leading to it and its mode bits
stay; another hard link to the old file keeps the old text, wherever it lies. Blocks on the disk.
"""

import os
import secrets
import stat
from contextlib import suppress

from runtime.errors import ToolError
from runtime.file_access import writing
from runtime.tools.paths import shorten
from runtime.tools.roots import Place, explain, not_a_file, opened_parent

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
