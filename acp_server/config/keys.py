"""A setting's key as a path of names, and how keys and foreign text are printed. Knows no schema."""

import json
import re
from collections.abc import Iterator

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
