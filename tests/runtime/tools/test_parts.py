"""The small parts: the window of lines, globs, the argument table, the catalog."""

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.tools import catalog
from runtime.tools.files.line_ranges import take
from runtime.tools.sandbox import ignore_files
from runtime.tools.sandbox.paths import quote
from runtime.values.errors import ConfigError

LINES = st.lists(st.text(alphabet="ab\r\n漢", max_size=6), max_size=8)


@settings(max_examples=150, deadline=None)
@given(chunks=LINES, first=st.integers(1, 6), count=st.none() | st.integers(1, 6), cap=st.integers(1, 30))
def test_window_is_a_run_of_whole_lines_of_the_text(chunks, first, count, cap):
    text = "".join(chunks)
    lines = [line for line in text.replace("\n", "\n\0").split("\0") if line]
    window = take(chunks, first=first, count=count, cap=cap, count_rest=True)
    wanted = lines[first - 1 : None if count is None else first - 1 + count]
    assert window.total == len(lines)
    if window.cut:
        assert wanted[0].startswith(window.text)
        assert len(window.text) == cap < len(wanted[0])
        assert window.more
        return
    taken = window.last - window.first + 1
    assert window.text == "".join(wanted[:taken])
    assert len(window.text) <= cap
    assert window.more == (window.last < len(lines) and first <= len(lines))
    if taken < len(wanted):
        assert len("".join(wanted[: taken + 1])) > cap


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("*.py", ["a.py", "x/y/a.py", ".py"], ["a.pyc", "py"]),
        ("/a", ["a"], ["x/a"]),
        ("x/*.py", ["x/a.py"], ["a.py", "x/y/a.py", "z/x/a.py"]),
        ("x/**/a", ["x/a", "x/y/a", "x/y/z/a"], ["a", "xa"]),
        ("**/a", ["a", "x/a"], ["xa"]),
        ("x/**", ["x/a", "x/y/a"], ["y/a"]),
        ("a?c", ["abc", "x/a.c"], ["a/c", "ac"]),
        ("[ab].c", ["a.c", "b.c"], ["c.c"]),
        ("[!ab].c", ["c.c"], ["a.c", "/.c"]),
        ("*.{ts,tsx}", ["a.ts", "a.tsx"], ["a.t", "a.{ts,tsx}"]),
        (r"\!x", ["!x"], ["x"]),
        ("a+b(c)", ["a+b(c)"], ["aab(c)"]),
        ("{", ["{"], ["a"]),
    ],
)
def test_globs(glob, yes, no):
    found = ignore_files.rules([glob])
    assert [path for path in yes if ignore_files.verdict(found, path, is_folder=False) is not True] == []
    assert [path for path in no if ignore_files.verdict(found, path, is_folder=False)] == []


def test_ignore_rules_last_match_decides():
    found = ignore_files.rules(["# c", "", "*.log", "!keep.log", "dir/", "[z-a"])
    assert ignore_files.verdict(found, "x/a.log", is_folder=False) is True
    assert ignore_files.verdict(found, "keep.log", is_folder=False) is False
    assert ignore_files.verdict(found, "dir", is_folder=True) is True
    assert ignore_files.verdict(found, "dir", is_folder=False) is None


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=20))
def test_any_glob_is_taken(pattern):
    ignore_files.verdict(ignore_files.rules([pattern]), "some/path", is_folder=False)


@settings(max_examples=200, deadline=None)
@given(st.text(min_size=1, max_size=12), st.text(min_size=1, max_size=12))
def test_quoted_names_are_one_line_and_tell_names_apart(one, other):
    shown = quote(one)
    assert len(shown.splitlines()) == 1
    assert (json.loads(shown) if shown.startswith('"') else shown) == one
    assert (quote(other) == shown) == (one == other)


def test_catalog_gives_each_tool_under_its_name():
    assert [tool.spec.name for tool in catalog.load_all()] == list(catalog.names())
    assert [tool.spec.name for tool in catalog.load_all(["list_dir"])] == ["list_dir"]
    for tool in catalog.load_all():
        schema = json.loads(tool.spec.parameters)
        assert schema["type"] == "object"
        assert json.dumps(schema, separators=(",", ":"), ensure_ascii=False) == tool.spec.parameters


def test_catalog_names_what_there_is():
    with pytest.raises(ConfigError, match="no tool named 'nope'; known: read_file, list_dir, find_files"):
        catalog.load("nope")


def test_catalog_imports_no_tool_before_it_is_asked():
    code = (
        "import sys; from runtime.tools import catalog; "
        "print([module for module, _ in catalog._FACTORIES.values() if module in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
