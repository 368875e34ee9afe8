"""Whether a path can be looked at without a worker thread. Two changes of thread cost more than the look.

On a disk of this machine a few small reads take microseconds. A file server that does not answer would hold
up the whole process, so everything that is not known to be local goes to a thread: another system than Linux,
another kind of file system, a place behind a link or on another device than its root.
"""

import os
import stat
from collections.abc import Callable
from typing import TypeVar

from runtime.local_disk import is_local
from runtime.ports import ToolContext
from runtime.tools.offload import in_thread
from runtime.tools.paths import absolute

T = TypeVar("T")


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
