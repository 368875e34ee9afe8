"""Whether a path can be looked at without a worker thread. Two changes of thread cost more than the look.

On a disk of this machine a few small reads take microseconds. A file server that does not answer would hold
up the whole process, so everything that is not known to be local goes to a thread: another system than Linux,
another kind of file system, a place behind a link or on another device than its root.
"""

import os
import stat
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from runtime.local_disk import is_local
from runtime.ports import ToolContext
from runtime.tools.offload import in_thread
from runtime.tools.paths import absolute

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
