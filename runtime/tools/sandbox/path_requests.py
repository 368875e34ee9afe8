"""A call on a path before it runs: what it wants to do, how it is shown, what may have been meant.

On a disk of this machine a few small reads take microseconds. A file server that does not answer would hold
up the whole process, so everything that is not known to be local goes to a thread: another system than
Linux, another kind of file system, a place behind a link or on another device than its root.
"""

import difflib
import itertools
import os
import stat
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from runtime.ports import ToolAction, ToolContext, ToolRequest, ToolView
from runtime.tools.sandbox.paths import absolute, in_thread, lexical, quote, shorten, shown
from runtime.tools.sandbox.roots import Place, inside, opened_folder, resolve
from runtime.tools.sandbox.sensitive_files import hides_something, is_secret, risk_of_writing
from runtime.values.errors import ToolError
from runtime.values.events import Location
from runtime.values.file_access import read_text

LOCAL_KINDS = frozenset(
    ("bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "reiserfs", "tmpfs", "xfs", "zfs")
)
"""File systems, as the kernel names them, that no other machine has to answer for."""
_MOUNTS = Path("/proc/self/mountinfo")


@lru_cache(maxsize=64)
def is_local(folder: str, mounts: Path = _MOUNTS) -> bool:
    """Whether a folder, links followed, is on a disk of this machine."""
    try:
        found = os.path.realpath(folder)
        lines = read_text(mounts, errors="surrogateescape").splitlines()
    except (OSError, ValueError):
        return False
    kinds = {}
    for line in lines:
        left, _, right = line.partition(" - ")
        # A later mount on the same place hides the earlier one.
        kinds[_unescaped(left.split(" ")[4])] = right.split(" ")[0]
    while found not in kinds and found != "/":
        found = os.path.dirname(found)
    return kinds.get(found) in LOCAL_KINDS


def _unescaped(path: str) -> str:
    """A path as `mountinfo` writes it: blanks and backslashes are octal there."""
    if "\\" not in path:
        return path
    for sign in (" ", "\t", "\n", "\\"):
        path = path.replace(f"\\{ord(sign):03o}", sign)
    return path


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


T = TypeVar("T")

_NO_NAMES = frozenset(("", ".", ".."))


async def look(raw: str, context: ToolContext, work: Callable[[Path | None], T]) -> T:
    """What `work` gives; it only looks at `raw`, reads little and changes nothing.

    work: gets where `raw` leads to when that is known already, see `plain_path`. Raises what it raises;
    ToolError for what can name no file.
    """
    plain = plain_path(raw, context)
    if plain is not None:
        return work(plain)
    return await in_thread(lambda _: work(None))


def plain_path(raw: str, context: ToolContext) -> Path | None:
    """Where `raw` leads to when it lies below a local root and no link is on the way, else None.

    Raises ToolError for an impossible path.
    """
    wanted = absolute(raw, context.cwd)
    for root in map(str, context.roots):
        if wanted.startswith(f"{root}/"):
            names = wanted[len(root) + 1 :].split("/")
            fit = is_local(root) and _NO_NAMES.isdisjoint(names) and _is_plain(root, names)
            return Path(wanted) if fit else None
    return None


@lru_cache(maxsize=64)
def _place_of(root: str) -> tuple[int, int] | None:
    """Device and number of a root, None when its path goes through a link.

    Asked once: as long as the path leads to the same folder, there is no link in it that matters.
    """
    status = os.stat(root)
    return (status.st_dev, status.st_ino) if os.path.realpath(root) == root else None


def _is_known(root: str, place: tuple[int, int]) -> bool:
    if place == _place_of(root):
        return True
    _place_of.cache_clear()
    return place == _place_of(root)


def _is_plain(root: str, names: list[str]) -> bool:
    """Folders and files of the root's own device as far as the path exists, and nothing else."""
    path = root
    try:
        top = os.stat(root)
        if not _is_known(root, (top.st_dev, top.st_ino)):
            return False
        for name in names:
            path = f"{path}/{name}"
            status = os.lstat(path)
            mode = status.st_mode
            if status.st_dev != top.st_dev or not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                return False
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False
    return True


_UNSEEN = "its name holds characters that cannot be seen"


async def path_request(action: ToolAction, raw: str, context: ToolContext) -> ToolRequest:
    """A call that reads, lists or changes one path. Raises ToolError for what can name no file."""
    return await look(raw, context, lambda plain: _request(action, raw, context, plain))


def _request(action: ToolAction, raw: str, context: ToolContext, plain: Path | None) -> ToolRequest:
    resolved = resolve(raw, context, plain)
    place = inside(resolved, context)
    found = Place(resolved.parent, (resolved.name,), quote(str(resolved))) if place is None else place
    risk = risk_of_writing(resolved.parts if place is None else place.parts) if action == "write" else ""
    if hides_something(raw) or hides_something(str(resolved)):
        risk = _UNSEEN
    return ToolRequest(
        action,
        found.shown,
        (resolved,),
        outside=place is None,
        secret=bool(found.parts) and is_secret(found, local=plain is not None),
        risk=risk,
    )


_LOOKED_AT = 5_000
_SUGGESTED = 5


def missing(raw: str, place: Place) -> ToolError:
    """The error for a place that does not exist, with names that may have been meant."""
    for depth in range(len(place.parts) - 1, -1, -1):
        folder = Place(place.root, place.parts[:depth], "")
        names = _names(folder)
        if names is not None:
            return ToolError(_sentence(raw, place, depth, names))
    return ToolError(f"{shorten(place.shown)} does not exist{_tilde(raw)}")


def _names(folder: Place) -> list[str] | None:
    try:
        with opened_folder(folder) as handle, os.scandir(handle) as entries:
            return [entry.name for entry in itertools.islice(entries, _LOOKED_AT)]
    except OSError:
        return None


def _sentence(raw: str, place: Place, depth: int, names: list[str]) -> str:
    wanted = place.parts[depth]
    near = _close(wanted, names)
    what = shorten(place.shown)
    where = quote("/".join(place.parts[:depth])) if depth else "the top folder"
    if depth < len(place.parts) - 1:
        what += f" does not exist: there is no folder {shorten(quote(wanted), 80)} in {shorten(where)}"
    else:
        what += " does not exist"
    if near:
        what += f"; near names in {shorten(where)}: {', '.join(quote(name) for name in near)}"
    return what + _tilde(raw)


def _close(wanted: str, names: list[str]) -> list[str]:
    """Near by spelling, whatever the case, and names that share the stem."""
    folded = {name.casefold(): name for name in sorted(names)}
    close = difflib.get_close_matches(wanted.casefold(), folded, n=_SUGGESTED, cutoff=0.6)
    stem = wanted.casefold().partition(".")[0]
    alike = [name for name in folded if stem and name.partition(".")[0] == stem and name not in close]
    return [folded[name] for name in (close + alike)[:_SUGGESTED]]


def _tilde(raw: str) -> str:
    return " (`~` is not expanded; give the whole path)" if raw.startswith("~") else ""
