"""Which folders are on a disk of this machine. Knows no tool and no store.

What is not known to be local may be a file server's, and one that does not answer holds up whoever looks.
"""

import os
from functools import lru_cache
from pathlib import Path

from runtime.file_access import read_text

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
