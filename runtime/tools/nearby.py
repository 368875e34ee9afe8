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

from runtime.ports import ToolContext
from runtime.tools.offload import in_thread
from runtime.tools.paths import absolute

T = TypeVar("T")

LOCAL_KINDS = frozenset(
    ("bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "reiserfs", "tmpfs", "xfs", "zfs")
)
"""File systems, as the kernel names them, that no other machine has to answer for."""
_MOUNTS = Path("/proc/self/mountinfo")


async def look(raw: str, context: ToolContext, work: Callable[[], T]) -> T:
    """What `work` gives; it only looks at `raw`, reads little and changes nothing.

    Raises what it raises; ToolError for what can name no file.
    """
    if is_near(raw, context):
        return work()
    return await in_thread(lambda _: work())


def is_near(raw: str, context: ToolContext) -> bool:
    """Whether `raw` lies below a local root, with no link on the way. Raises ToolError for an impossible
    path.
    """
    wanted = absolute(raw, context.cwd)
    for spelled in (str(context.cwd), *map(str, context.roots)):
        if wanted.startswith(f"{spelled}/"):
            names = wanted[len(spelled) + 1 :].split("/")
            return ".." not in names and is_local(spelled) and _is_plain(spelled, names)
    return False


@lru_cache(maxsize=64)
def is_local(folder: str, mounts: Path = _MOUNTS) -> bool:
    """Whether a folder, links followed, is on a disk of this machine."""
    try:
        found = os.path.realpath(folder)
        lines = mounts.read_text("utf-8", "surrogateescape").splitlines()
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


def _is_plain(root: str, names: list[str]) -> bool:
    """Folders and files of the root's own device as far as the path exists, and nothing else."""
    path = root
    try:
        device = os.stat(root).st_dev
        for name in names:
            path = f"{path}/{name}"
            status = os.lstat(path)
            if status.st_dev != device or not (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
                return False
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False
    return True


def _unescaped(path: str) -> str:
    """A path as `mountinfo` writes it: blanks and backslashes are octal there."""
    if "\\" not in path:
        return path
    for sign in (" ", "\t", "\n", "\\"):
        path = path.replace(f"\\{ord(sign):03o}", sign)
    return path
