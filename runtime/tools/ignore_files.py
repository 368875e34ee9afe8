"""Ignore files of a folder tree: their rules by folder, and what they say of a path. Standard library only.

Paths are relative to a root, `/` between their names. Ignore files above the root are not read.
"""

import os
import stat
import time
from dataclasses import dataclass

from runtime.file_access import NO_WAITING, reading
from runtime.tools.globs import Rule, rules, verdict

IGNORE_FILES = (".gitignore", ".ignore")
_READ = getattr(os, "O_NOFOLLOW", 0) | NO_WAITING
_LIMIT = 1024 * 1024
_SETTLED_NS = 2_000_000_000
_MOST_FOLDERS = 4096

Stamp = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Layer:
    """The rules of one ignore file. prefix: of paths in its folder, '' or 'a/b/'."""

    prefix: str
    rules: tuple[Rule, ...]


def layers_of(root: str, prefix: str, names: tuple[str, ...] = IGNORE_FILES) -> list[Layer]:
    """The ignore files of one folder."""
    made = []
    for name in names:
        lines = lines_of(os.path.join(root, prefix + name))
        if lines:
            made.append(Layer(prefix, rules(lines)))
    return made


def layers_above(root: str, parts: tuple[str, ...], names: tuple[str, ...] = IGNORE_FILES) -> list[Layer]:
    """The ignore files from the root down to the folder above the path with these names."""
    made: list[Layer] = []
    for depth in range(len(parts)):
        made += layers_of(root, "".join(f"{part}/" for part in parts[:depth]), names)
    return made


def ignored(layers: list[Layer], path: str, *, is_folder: bool) -> bool:
    """Whether the path is left out. The nearest ignore file that says anything decides."""
    for layer in reversed(layers):
        answer = verdict(layer.rules, path[len(layer.prefix) :], is_folder=is_folder)
        if answer is not None:
            return answer
    return False


class Absent:
    """Folders of a local disk in which none of some files is, so that none need be opened to know it again.

    A folder's time changes with what is in it. It is trusted when the folder has been left alone for a while:
    two changes within the clock's step look like one.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._known: dict[str, Stamp] = {}

    def all_in(self, folder: str) -> bool:
        """Whether none of the files is in there."""
        try:
            status = os.stat(folder)
            stamp = status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns
            if self._known.get(folder) == stamp:
                return True
            if any(os.path.lexists(os.path.join(folder, name)) for name in self._names):
                return False
        except (OSError, ValueError):
            return False
        if time.time_ns() - max(stamp[2:]) > _SETTLED_NS:
            if len(self._known) >= _MOST_FOLDERS:
                self._known.clear()
            self._known[folder] = stamp
        return True


def lines_of(path: str) -> list[str]:
    """The lines of an ignore file; none when it is missing, special, a link, too large or unreadable."""
    data = read_file(path, _LIMIT)
    return data.decode("utf-8", "replace").split("\n") if data else []


def read_file(path: str, limit: int, *, complain: bool = False) -> bytes:
    """A file's bytes; none for one that is larger, special or a link. complain: raise OSError, else none."""
    try:
        with reading(path, _READ) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
                return b""
            return file.read(limit)
    except OSError:
        if complain:
            raise
        return b""
