"""Ignore files of a folder tree: their rules by folder, and what they say of a path. Standard library only.

Paths are relative to a root, `/` between their names. Ignore files above the root are not read.
"""

import os
import stat
from dataclasses import dataclass

from runtime.tools.globs import Rule, rules, verdict

IGNORE_FILES = (".gitignore", ".ignore")
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_LIMIT = 1024 * 1024


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


def lines_of(path: str) -> list[str]:
    """The lines of an ignore file; none when it is missing, special, a link, too large or unreadable."""
    data = read_file(path, _LIMIT)
    return data.decode("utf-8", "replace").split("\n") if data else []


def read_file(path: str, limit: int, *, complain: bool = False) -> bytes:
    """A file's bytes; none for one that is larger, special or a link. complain: raise OSError, else none."""
    try:
        descriptor = os.open(path, _READ)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
                return b""
            return file.read(limit)
    except OSError:
        if complain:
            raise
        return b""
