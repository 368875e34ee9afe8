"""One source of settings: its tree, its keys as paths of names, and where each of them was written.

Knows no schema. Named tuples here and beside it: a frozen dataclass takes six times as long to define, and
a session waits. Also how deep a text nests: `tomllib` keeps every prefix of a dotted key, so its memory
grows with the square of a key's parts, and one line of a checked-out file could take all there is.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple

Key = tuple[str, ...]
Tree = dict[str, object]

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def printable(text: str, limit: int = 120) -> str:
    """`text` on one line, safe for a terminal: control and direction characters escaped, cut at `limit`."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in cut)


def key_text(key: Key) -> str:
    """The key as TOML writes it: `a.b."c d"`."""
    return ".".join(part if _BARE.fullmatch(part) else printable(json.dumps(part)) for part in key)


def subtree(tree: Tree, key: Key) -> object:
    """The value at `key`, or None."""
    here: object = tree
    for part in key:
        if not isinstance(here, dict) or part not in here:
            return None
        here = here[part]
    return here


def table(tree: Tree, *key: str) -> Tree:
    """The table at `key`, or an empty one."""
    found = subtree(tree, key)
    return found if isinstance(found, dict) else {}


def leaves(tree: Tree, prefix: Key = ()) -> Iterator[tuple[Key, object]]:
    """Every value that is no table, and every empty table, with its key, in order."""
    for name, value in tree.items():
        key = (*prefix, name)
        if isinstance(value, dict) and value:
            yield from leaves(value, key)
        else:
            yield key, value


def put(tree: Tree, key: Key, value: object) -> None:
    """Set `key`, making tables on the way; a value that stands in the way of a table is replaced."""
    here = tree
    for part in key[:-1]:
        inner = here.get(part)
        if not isinstance(inner, dict):
            inner = here[part] = {}
        here = inner
    here[key[-1]] = value


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


MAX_DEPTH = 32
"""Levels that any source may nest; settings use four, a provider's options a few more."""

# Compiled when a suspicious line asks for it, which is hardly ever. A string that never ends takes the rest,
# so that every character is looked at once.
_TOKEN = (
    r"(?P<comment>#[^\n]*)"
    r'|(?P<word>"""(?:\\.|[^\\])*?(?:"""|\Z)"{0,2}'
    r"|'''.*?(?:'''|\Z)'{0,2}"
    r'|"(?:\\.|[^"\\\n])*(?:"|$)'
    r"|'[^'\n]*(?:'|$)"
    r"|[A-Za-z0-9_-]+)"
    r"|(?P<space>[ \t]+)|(?P<dot>\.)|(?P<other>.)"
)


def long_key_line(text: str) -> int | None:
    """The line of a dotted key with more than MAX_DEPTH parts; None if there is none."""
    if all(line.count(".") < MAX_DEPTH for line in text.split("\n")):
        return None
    dots, last = 0, "other"
    for token in re.finditer(_TOKEN, text, re.DOTALL | re.MULTILINE):
        kind = token.lastgroup or "other"
        if kind == "space":
            continue
        if kind == "dot" and last == "word":
            dots += 1
        elif not (kind == "word" and last == "dot"):
            dots = 0
        if dots >= MAX_DEPTH:
            return text.count("\n", 0, token.start()) + 1
        last = kind
    return None


def is_deep(value: object) -> bool:
    """Whether tables and lists in `value` nest deeper than MAX_DEPTH."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        tables = [inner for around in level if isinstance(around, dict) for inner in around.values()]
        lists = [inner for around in level if isinstance(around, list) for inner in around]
        level = tables + lists
        if not level:
            return False
    return True
