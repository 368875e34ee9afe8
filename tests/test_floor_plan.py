"""The floor plan holds: sizes of files and folders, no import in a string, no circle, no arrow upwards."""

import re
import tomllib
from pathlib import Path
from statistics import median

import pytest

from tests.support.imports import PACKAGES, circles, graph, modules, named_in_strings, upward

ROOT = Path(__file__).resolve().parent.parent
MODULES = modules(ROOT)
SOURCES = {name: path.read_text() for name, path in MODULES.items()}

# Who may name a module in a string, and why. Everywhere else an import is a statement.
STRINGS_ALLOWED = {
    "acp_server.cli.main": "the catalog of commands",
    "acp_server.cli.editors": "the folder of pages, which is data",
    "acp_server.start": "what is imported while nobody waits",
    "runtime.providers.catalog": "the catalog of providers",
    "runtime.tools.catalog": "the catalog of tools",
}
MOST_ENTRIES, MOST_ENTRIES_OF_TESTS = 16, 24
SMALL_LINES, MOST_SMALL = 40, 10


def entries(folder: Path) -> list[str]:
    """What a reader has to look through. Package files, READMEs and data do not count."""
    return sorted(
        path.name
        for path in folder.iterdir()
        if (path.is_dir() or path.suffix == ".py") and path.name not in ("__pycache__", "__init__.py", "data")
    )


def folders(top: str) -> list[Path]:
    """All folders of code below one."""
    skipped = {"__pycache__", "data", "node_modules"}
    found = [path for path in (ROOT / top).rglob("*") if path.is_dir()]
    return [ROOT / top, *(path for path in found if not skipped & set(path.relative_to(ROOT).parts))]


def overfull(top: str, most: int) -> dict[str, int]:
    """Folders below one with more entries than that, and how many."""
    counts = {str(folder.relative_to(ROOT)): len(entries(folder)) for folder in folders(top)}
    return {folder: count for folder, count in counts.items() if count > most}


def lengths() -> dict[str, int]:
    """Module -> lines, without the files that only make a package or start the program."""
    counted = {name: path for name, path in MODULES.items() if path.stem not in ("__init__", "__main__")}
    return {name: len(SOURCES[name].splitlines()) for name in counted}


@pytest.mark.parametrize("top", PACKAGES)
def test_no_folder_holds_more_than_one_can_look_through(top: str):
    assert overfull(top, MOST_ENTRIES) == {}


def test_no_folder_of_tests_does():
    assert overfull("tests", MOST_ENTRIES_OF_TESTS) == {}


def test_files_are_neither_scraps_nor_tomes():
    sizes = lengths()
    assert 120 <= median(sizes.values()) <= 180
    assert len(small := [name for name, size in sizes.items() if size < SMALL_LINES]) <= MOST_SMALL, small


def test_a_module_is_imported_by_a_statement():
    found = [
        f"{name}, line {line}: {module}"
        for name, text in SOURCES.items()
        for line, module in named_in_strings(text, SOURCES)
        if not name.startswith(tuple(STRINGS_ALLOWED))
    ]
    assert found == []


def test_no_excuse_outlives_its_module():
    used = [name for name, text in SOURCES.items() if named_in_strings(text, SOURCES)]
    assert [start for start in STRINGS_ALLOWED if not any(name.startswith(start) for name in used)] == []


def floors(package: str) -> list[set[str]]:
    """The floors of a package as its contract has them, the lowest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (one["layers"] for one in contracts if one.get("containers") == [package])
    return [set(re.split(r"[ :|]+", floor)) for floor in reversed(layers)]


def test_no_circle_and_no_arrow_upwards_with_strings_counted():
    edges = graph({name: text for name, text in SOURCES.items() if MODULES[name].stem != "__init__"})
    assert circles(edges) == []
    assert upward(edges, "runtime", floors("runtime")) == []
    assert upward(edges, "acp_server", floors("acp_server")) == []


@pytest.mark.parametrize("package", ["runtime", "acp_server"])
def test_every_folder_stands_on_a_floor(package: str):
    named = set().union(*floors(package))
    free = {"__main__"}
    assert {Path(name).stem for name in entries(ROOT / package)} - free == named


PLANTED = 'from importlib import import_module\n\ndef f():\n    return import_module("acp_server.app.app")\n'


def test_a_planted_string_is_found():
    planted = {**SOURCES, "runtime.history.rows.pairs": PLANTED}
    assert named_in_strings(PLANTED, SOURCES) == [(4, "acp_server.app.app")]
    assert any("runtime.history.rows.pairs" in circle for circle in circles(graph(planted)))
    above = {"runtime.values.rows": 'NAME = "runtime.session.turn.Turn"'}
    edges = graph({**SOURCES, **above})
    assert upward(edges, "runtime", floors("runtime")) == ["runtime.values.rows -> runtime.session.turn"]
