"""Confinement: a path from a model becomes a place below one of the session's roots, or is refused.

Knows no tool. Links are resolved when the path is used, and the file is then opened folder by folder
from the root without following any link, so a swap in between cannot lead outside. Everything here
blocks on the disk: call it in a worker thread.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from runtime.ports import ToolContext
from runtime.tools.sandbox.paths import absolute, below, quote, relative, shorten
from runtime.values.errors import ToolError
from runtime.values.file_access import NO_WAITING, DatabaseHeld, close, open_file

_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
# A folder on the way needs only search permission where the system can ask for just that.
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | _NOFOLLOW
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NOFOLLOW
# Non-blocking, and no controlling terminal: a FIFO or tty swapped in after the check must not hold us.
_FILE = os.O_RDONLY | _NOFOLLOW | NO_WAITING
_HAS_DIR_FD = os.open in os.supports_dir_fd and os.scandir in os.supports_fd

_KINDS = (
    (stat.S_ISREG, "a regular file"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_REASONS = {
    errno.ENOENT: "does not exist",
    errno.ENOTDIR: "does not exist (a part of the path is not a folder)",
    errno.EACCES: "may not be {done} (permission denied)",
    errno.EPERM: "may not be {done} (not permitted)",
    errno.ELOOP: "goes through a link that changed or leads in a circle",
    errno.ENAMETOOLONG: "has a name too long for the file system",
    errno.EROFS: "may not be {done} (the file system is read-only)",
    errno.ENOSPC: "cannot be {done} (the disk is full)",
}
# What the kernel tells there of processes, our own among them, is nobody's file.
_KERNEL = (Path("/proc"), Path("/sys"))


@dataclass(frozen=True, slots=True)
class Place:
    """A path below `root`, links resolved. parts: names from the root on, () for the root itself."""

    root: Path
    parts: tuple[str, ...]
    shown: str
    """For the model and the person, quoted if need be."""

    @property
    def path(self) -> Path:
        """The absolute path."""
        return self.root.joinpath(*self.parts)


def resolve(raw: str, context: ToolContext, plain: Path | None = None) -> Path:
    """Where `raw` leads to now, links followed, be it inside or outside. Raises ToolError.

    plain: that place, when it was just found to be below a root with no link on the way.
    """
    resolved = plain or _followed(raw, context)
    if any(below(resolved, kernel) is not None for kernel in _KERNEL):
        raise ToolError(f"{shorten(quote(raw))} is no file but the kernel's own ({quote(str(resolved))})")
    return resolved


def locate(raw: str, context: ToolContext, plain: Path | None = None) -> Place:
    """The place that `raw` leads to now; it need not exist. plain: see `resolve`.

    Raises ToolError when it is outside the roots and was not granted, or was judged when it led elsewhere.
    """
    resolved = resolve(raw, context, plain)
    if context.judged and resolved not in context.judged:
        given, target = shorten(quote(raw)), shorten(quote(str(resolved)))
        raise ToolError(f"{given} leads to {target} now, and led elsewhere when it was allowed; try again")
    place = inside(resolved, context)
    if place is None:
        raise ToolError(_outside(raw, resolved, context))
    return place


def _followed(raw: str, context: ToolContext) -> Path:
    try:
        return Path(os.path.realpath(absolute(raw, context.cwd)))
    except (OSError, ValueError) as error:
        raise ToolError(f"path cannot be resolved: {shorten(quote(raw))}") from error


def inside(resolved: Path, context: ToolContext) -> Place | None:
    """The place of a resolved path; None when it is outside the roots and was not granted."""
    for root in context.roots:
        rest = below(resolved, root)
        if rest is not None:
            return Place(root, _names(rest), quote(relative(resolved, context.roots)))
    for granted in context.granted:
        if below(resolved, granted) is not None:
            # The root of the place is the folder above, so that a file too has a name below it.
            rest = below(resolved, granted.parent) or ""
            return Place(granted.parent, _names(rest), quote(str(resolved)))
    return None


def _names(rest: str) -> tuple[str, ...]:
    return tuple(rest.split(os.sep)) if rest else ()


def kind(mode: int) -> str:
    """What a file of this `st_mode` is, with its article."""
    return next((name for test, name in _KINDS if test(mode)), "a special file")


def stat_place(place: Place) -> os.stat_result | None:
    """Its status, links not followed; None when there is nothing. Raises ToolError."""
    try:
        if not place.parts:
            return os.stat(place.root)
        with opened_parent(place) as (folder, name):
            return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ToolError(explain(place.shown, error)) from error


@contextmanager
def opened_file(place: Place) -> Iterator[int]:
    """A descriptor of the regular file there, for reading. Raises ToolError, also for special files.

    FileNotFoundError is passed on: only the caller knows what to suggest.
    """
    try:
        descriptor = _open_checked(place)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(errno.ENOENT, explain(place.shown, error)) from error
    except OSError as error:
        raise ToolError(explain(place.shown, error)) from error
    try:
        yield descriptor
    finally:
        close(descriptor)


@contextmanager
def opened_folder(place: Place) -> Iterator[int | str]:
    """A handle of the folder there, fit for os.scandir: a descriptor, or a path where there is none.

    Raises OSError.
    """
    if not _HAS_DIR_FD:
        yield str(place.path)
        return
    if not place.parts:
        descriptor = os.open(place.root, _FOLDER)
    else:
        with opened_parent(place) as (folder, name):
            descriptor = os.open(name, _FOLDER, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def explain(shown: str, error: OSError, done: str = "read") -> str:
    """One sentence for an error of the system about the place shown. done: what was to be done with it."""
    if isinstance(error, DatabaseHeld):
        return f"{shorten(shown)} may not be {done}: it belongs to the session store, which is in use"
    reason = _REASONS.get(error.errno or 0, f"cannot be {{done}} ({error.strerror or 'unknown error'})")
    return f"{shorten(shown)} {reason.format(done=done)}"


def _open_checked(place: Place) -> int:
    if not place.parts:
        raise ToolError(not_a_file(place, stat.S_IFDIR))
    with opened_parent(place) as (folder, name):
        # Looked at before it is opened: merely opening a device can make it act.
        before = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if not stat.S_ISREG(before):
            raise ToolError(not_a_file(place, before))
        descriptor = open_file(name, _FILE, dir_fd=folder)
    # And once more on what was really opened.
    after = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(after):
        close(descriptor)
        raise ToolError(not_a_file(place, after))
    return descriptor


@contextmanager
def opened_parent(place: Place, *, make: bool = False) -> Iterator[tuple[int | None, str]]:
    """The folder that holds the place, reached without following a link, and the name in it.

    make: folders that are missing on the way are made. None is a system that cannot open relative to a
    folder; the name is then the whole path. Raises OSError.
    """
    if not _HAS_DIR_FD:
        if make:
            place.path.parent.mkdir(parents=True, exist_ok=True)
        yield None, str(place.path)
        return
    descriptor = os.open(place.root, _STEP)
    try:
        for part in place.parts[:-1]:
            deeper = _deeper(descriptor, part, make)
            os.close(descriptor)
            descriptor = deeper
        yield descriptor, place.parts[-1]
    finally:
        os.close(descriptor)


def _deeper(folder: int, name: str, make: bool) -> int:
    try:
        return os.open(name, _STEP, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
    return os.open(name, _STEP, dir_fd=folder)


def not_a_file(place: Place, mode: int) -> str:
    """The sentence for a place that holds something else than a regular file."""
    if stat.S_ISDIR(mode):
        return f"{shorten(place.shown)} is a folder; use list_dir to see what is in it"
    return f"{shorten(place.shown)} is {kind(mode)}, not a regular file"


def _outside(raw: str, resolved: Path, context: ToolContext) -> str:
    allowed = ", ".join(quote(str(root)) for root in context.roots)
    given, target = shorten(quote(raw)), shorten(quote(str(resolved)))
    via = "" if given == target else f" (it leads to {target})"
    return f"{given} is outside the folders of this session{via}; allowed: {shorten(allowed, 600)}"
