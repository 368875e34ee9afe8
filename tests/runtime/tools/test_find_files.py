"""find_files: globs, ignore files, the newest first, bounded."""

import os

import pytest

from runtime.tools.search import find_files
from runtime.tools.search.find_files import FindFiles
from runtime.values.errors import ToolError
from tests.runtime.tools.support import context, text_of, write

TOOL = FindFiles()


@pytest.fixture
def project(tmp_path):
    names = [
        "a.py",
        "src/b.py",
        "src/deep/c.py",
        "src/deep/test_c.py",
        "src/d.ts",
        "build/out.py",
        ".hidden/e.py",
    ]
    write(tmp_path, dict.fromkeys(names, "x"))
    write(tmp_path, {".gitignore": "build/\n*.log\n", "src/.ignore": "!keep.log\n", ".git/config.py": "x"})
    write(tmp_path, {"x.log": "x", "src/keep.log": "x"})
    for age, name in enumerate(names):
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"pattern": "*.py"}, ["a.py", "src/b.py", "src/deep/c.py", "src/deep/test_c.py", ".hidden/e.py"]),
        ({"pattern": "src/*.py"}, ["src/b.py"]),
        ({"pattern": "src/**/*.py"}, ["src/b.py", "src/deep/c.py", "src/deep/test_c.py"]),
        ({"pattern": "./src/*.{py,ts}"}, ["src/b.py", "src/d.ts"]),
        ({"pattern": "**/test_*.py"}, ["src/deep/test_c.py"]),
        ({"pattern": "*.py", "path": "src"}, ["src/b.py", "src/deep/c.py", "src/deep/test_c.py"]),
        ({"pattern": "deep/*.py", "path": "src"}, ["src/deep/c.py", "src/deep/test_c.py"]),
        ({"pattern": "[ab].py"}, ["a.py", "src/b.py"]),
        ({"pattern": "*.log"}, ["src/keep.log"]),
        ({"pattern": "*.PY"}, ["[no file matches]"]),
        ({"pattern": "config.py"}, ["[no file matches]"]),
    ],
)
async def test_patterns(project, arguments, expected):
    assert (await text_of(TOOL, context(project), **arguments)).split("\n") == expected


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "needs the argument pattern"),
        ({"pattern": "*", "path": "none"}, "none does not exist"),
        ({"pattern": "*", "path": "a.py"}, "a.py is a regular file, not a folder"),
        ({"pattern": "*", "path": ".."}, "outside the folders"),
        ({"pattern": "/etc/*"}, "matched below path"),
        ({"pattern": "../*"}, "matched below path"),
        ({"pattern": "x" * 2000}, "too long"),
        ({"pattern": "[z-a]"}, "is no glob"),
    ],
)
async def test_bad_calls(project, arguments, said):
    with pytest.raises(ToolError, match=said):
        await TOOL.run(arguments, context(project))


async def test_links_are_not_followed(project):
    (project / "up").symlink_to("..")
    (project / "link.py").symlink_to("/etc/passwd")
    found = await text_of(TOOL, context(project), pattern="*")
    assert "link.py" not in found
    assert "up/" not in found


async def test_no_more_than_can_be_read(project, monkeypatch):
    monkeypatch.setattr(find_files, "_SHOWN", 2)
    found = await text_of(TOOL, context(project), pattern="*.py")
    assert found.split("\n") == ["a.py", "src/b.py", "[the newest 2 of 5; narrow pattern or path]"]


async def test_a_search_that_would_not_end(project, monkeypatch):
    monkeypatch.setattr(find_files, "_LOOKED_AT", 3)
    assert "not all was searched" in await text_of(TOOL, context(project), pattern="nothing")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
async def test_a_closed_folder_holds_nothing(project):
    (project / "src").chmod(0)
    assert "src" not in await text_of(TOOL, context(project), pattern="*")


async def test_names_that_could_be_misread(tmp_path):
    write(tmp_path, {"a\nb.py": "x"})
    assert await text_of(TOOL, context(tmp_path), pattern="*.py") == '"a\\nb.py"'


async def test_before_it_runs(project):
    where = context(project)
    assert TOOL.view({"pattern": "*.py", "path": "src"}, where).title == "Find *.py in src"
    assert TOOL.view({"pattern": "*.py"}, where).title == "Find *.py"
    assert TOOL.view({}, where).title == "Find files"
    request = await TOOL.request({"pattern": "*.py"}, where)
    assert (request.action, request.paths, request.outside) == ("read", (project,), False)
    assert (await TOOL.request({"pattern": "*", "path": "/etc"}, where)).outside
