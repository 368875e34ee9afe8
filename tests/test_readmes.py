"""The READMEs of the source agree with it: each file once in the table of its folder, no other."""

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("acp_server", "runtime", "schemas")
ENDINGS = (".py", ".js", ".css", ".html")
MOST_BYTES_TO_BYTES = 25
READMES = sorted(path for name in PACKAGES for path in (ROOT / name).rglob("README.md"))
PATH = re.compile(r"^\d+\. `([\w./-]+)`:", re.MULTILINE)


def described(folder: Path) -> bool:
    """Whether the folder, which may be of another README's, is one with a table of its own."""
    return (folder / "README.md").exists()


def owned(folder: Path) -> list[str]:
    """The source files that the folder's README answers for: all below, but for folders with their own."""
    found: list[str] = []
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name != "__pycache__" and not described(path):
            found += [f"{path.name}/{name}" for name in owned(path)]
        elif path.suffix in ENDINGS and path.name != "__init__.py":
            found.append(path.name)
    return found


def listed(text: str) -> list[str]:
    """The files that stand in the first cells of the tables."""
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("|")]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell) if name.endswith(ENDINGS)]


def problems(text: str, files: list[str]) -> list[str]:
    """What is wrong between the tables of a README and the files that it answers for."""
    count = Counter(listed(text))
    return [
        *(f"not in the table: {name}" for name in files if name not in count),
        *(f"no such file: {name}" for name in count if name not in files),
        *(f"named {times} times: {name}" for name, times in count.items() if times > 1),
    ]


def path_below(text: str, heading: str) -> list[str]:
    """The files that a path names, in order: all numbered lists below a heading of the second level."""
    _, _, rest = text.partition(f"## {heading}\n")
    return PATH.findall(rest.partition("\n## ")[0])


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.relative_to(ROOT).as_posix())
def test_every_file_stands_once_in_the_table_of_its_folder(readme: Path):
    assert problems(readme.read_text(), owned(readme.parent)) == []


def test_every_package_is_described():
    assert [name for name in PACKAGES if ROOT / name / "README.md" not in READMES] == []
    assert len(READMES) > 12
    assert sum(len(owned(readme.parent)) for readme in READMES) > 300


def test_a_table_that_is_wrong_is_noticed():
    table = "| File | Holds |\n|---|---|\n| `a.py`, `b/c.py` | two |\n| `d.js` | one |\n"
    assert problems(table, ["a.py", "b/c.py", "d.js"]) == []
    assert problems(table, ["a.py", "b/c.py", "d.js", "e.py"]) == ["not in the table: e.py"]
    assert problems(table, ["a.py", "b/c.py"]) == ["no such file: d.js"]
    assert problems(f"{table}| `a.py` | again |\n", ["a.py", "b/c.py", "d.js"]) == ["named 2 times: a.py"]


def test_the_way_from_bytes_to_bytes_is_short_and_there():
    files = path_below((ROOT / "acp_server" / "README.md").read_text(), "From bytes to bytes")
    assert [name for name in files if not (ROOT / name).is_file()] == []
    assert files[0] == files[-1] == "acp_server/wire/streams.py"
    assert 10 < len(set(files)) <= MOST_BYTES_TO_BYTES


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.relative_to(ROOT).as_posix())
def test_every_station_of_a_path_exists(readme: Path):
    assert [name for name in PATH.findall(readme.read_text()) if not (ROOT / name).is_file()] == []


def test_a_path_is_read_in_its_order():
    there = "## A way\n\n1. `a/b.py`: first\n2. `c.py`: then\n"
    text = f"{there}\nAnd back:\n\n1. `a/b.py`: last\n\n## Else\n\n1. `d.py`: no\n"
    assert path_below(text, "A way") == ["a/b.py", "c.py", "a/b.py"]
