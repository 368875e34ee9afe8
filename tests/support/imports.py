"""Who imports whom among our packages: static imports and those by a name in a string. Runs no code of ours.

The checker of contracts reads import statements alone; a module's name in a string would walk round it.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

PACKAGES = ("acp_server", "runtime", "schemas")
NAME = re.compile(rf"(?:{'|'.join(PACKAGES)})(?:\.\w+)+")

Graph = Mapping[str, set[str]]
"""Module -> modules that it imports."""


def modules(root: Path) -> dict[str, Path]:
    """Every module below the packages, by its dotted name."""
    paths = (path for package in PACKAGES for path in sorted((root / package).rglob("*.py")))
    return {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in paths
    }


def named_in_strings(source: str, known: Mapping[str, object]) -> list[tuple[int, str]]:
    """Line and module of each string that is the name of one, or of a function in one."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and NAME.fullmatch(node.value):
            name = node.value if node.value in known else node.value.rpartition(".")[0]
            if name in known:
                found.append((node.lineno, name))
    return found


def imported(source: str, known: Mapping[str, object]) -> Iterator[str]:
    """The modules of ours that the import statements of a source name, wherever they stand."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.module in known:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else node.module


def graph(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Module -> what it imports, strings included. A package's own file is left out: it only lends names."""
    return {
        name: {*imported(text, sources), *(module for _, module in named_in_strings(text, sources))} - {name}
        for name, text in sources.items()
    }


def circles(edges: Graph) -> list[list[str]]:
    """Groups of modules that reach each other, each sorted."""
    reach = {name: reachable(edges, name) for name in edges}
    groups = {tuple(sorted(other for other in reach[name] if name in reach.get(other, ()))) for name in edges}
    return sorted(list(group) for group in groups if len(group) > 1)


def reachable(edges: Graph, start: str) -> set[str]:
    """All that is imported by way of imports."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for name in edges.get(waiting.pop(), ()):
            if name not in seen:
                seen.add(name)
                waiting.append(name)
    return seen


def upward(edges: Graph, package: str, floors: list[set[str]]) -> list[str]:
    """Imports from a floor of a package to one above it. floors: the lowest first."""
    rank = {f"{package}.{name}": number for number, floor in enumerate(floors) for name in floor}

    def floor(module: str) -> int | None:
        return rank.get(".".join(module.split(".")[:2]))

    return sorted(
        f"{importer} -> {name}"
        for importer, names in edges.items()
        for name in names
        if (low := floor(importer)) is not None and (high := floor(name)) is not None and high > low
    )
