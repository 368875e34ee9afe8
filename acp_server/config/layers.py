"""One source of settings: its tree, and where each key of it was written. Knows no schema.

Named tuples here and beside it: a frozen dataclass takes six times as long to define, and a session waits.
"""

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from acp_server.config.keys import Key, Tree

Source = Literal["default", "preset", "derived", "user", "project", "file", "environment", "flag"]


class Origin(NamedTuple):
    """Where a value is from. name: a file's path, a variable, a flag, a preset. line: 1-based, 0 for none."""

    source: Source
    name: str = ""
    line: int = 0

    def __str__(self) -> str:
        if self.line:
            return f"{self.name}:{self.line}"
        return self.name or self.source


DEFAULT = Origin("default")


class Layer(NamedTuple):
    """A source's tree. folder: where its relative paths start. digest: sha256 of a file's bytes, else ''."""

    source: Source
    name: str
    folder: str
    tree: Tree
    find: Callable[[Key], Origin]
    digest: str = ""

    def says(self, key: Key, text: str) -> str:
        """A message about a key, led by the place where it stands."""
        return f"{self.find(key)}: {text}"


def named_origins(source: Source, names: Mapping[Key, str]) -> Callable[[Key], Origin]:
    """Places for values that came one by one, under a name each (a variable, a flag)."""

    def find(key: Key) -> Origin:
        for end in range(len(key), 0, -1):
            if key[:end] in names:
                return Origin(source, names[key[:end]])
        inside = (name for written, name in names.items() if written[: len(key)] == key)
        return Origin(source, next(inside, ""))

    return find
