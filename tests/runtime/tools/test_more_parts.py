"""The small parts behind the tools that change things: arguments, globs, tails of output, diffs, stamps."""

import re
import time

import pytest

from runtime.tools import catalog
from runtime.tools.arguments import Parameter, ToolSettings, check, tool_spec
from runtime.tools.files.line_diff import MOST, file_diff, line_counts
from runtime.tools.sandbox.ignore_files import rule, translate
from runtime.tools.shell.run_command import RunCommand
from runtime.tools.shell.shell import Tail, readable
from runtime.values.errors import ToolError
from runtime.values.seen_files import Digest, SeenFiles, Stamp, digest
from tests.runtime.tools.support import context

TABLE = (
    Parameter(
        "rows", "list", required=True, items=(Parameter("word", "string", choices=("a", "b"), required=True),)
    ),
)


def test_a_list_of_objects_in_the_schema():
    assert tool_spec("t", "d", TABLE).parameters == (
        '{"type":"object","properties":{"rows":{"type":"array","items":{"type":"object","properties":'
        '{"word":{"type":"string","enum":["a","b"]}},"required":["word"]}}},"required":["rows"]}'
    )


def test_a_list_of_objects_checked():
    given = check("t", TABLE, {"rows": [{"word": "a"}, {"word": "b"}]})
    assert [row.text("word") for row in given.rows("rows")] == ["a", "b"]
    assert (given.rows("none"), given.integer("rows", 7)) == ((), 7)
    for rows, said in (("x", "a list of objects"), ([{"word": "c"}], "one of a, b"), ([{}], "entry 1 needs")):
        with pytest.raises(ToolError, match=said):
            check("t", TABLE, {"rows": rows})


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("*.py", ["a.py", "x/y/a.py"], ["a.pyc"]),
        ("/a/*.py", ["a/b.py"], ["x/a/b.py", "a/b/c.py"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["a/xb", "ab"]),
        ("**/x/**/y", ["x/y", "a/x/b/y", "x/x/y/x/y"], ["xy", "x/z"]),
        ("a/**", ["a/b", "a/b/c"], ["a", "b/a/c"]),
        ("**", ["a", "a/b"], []),
        ("*a*b*c", ["abc", "xaybzc", "aabbcc"], ["acb", "ab/c"]),
        ("{a,b/c}.{x,y}", ["a.x", "b/c.y"], ["b.x", "a.z"]),
        ("[!a]?.c", ["bc.c"], ["ac.c", "b.c"]),
        ("a?c*", ["abc", "abcd"], ["a/c", "ac"]),
        ("\\*", ["*"], ["a"]),
    ],
)
def test_globs(glob, yes, no):
    found = rule(glob)
    assert found is not None
    assert [bool(found.expression.match(path)) for path in (*yes, *no)] == [True] * len(yes) + [False] * len(
        no
    )


@pytest.mark.parametrize(
    ("glob", "path"), [("*a" * 200 + "b", "a" * 4000), ("**/a/" * 200 + "b", "a/" * 2000)]
)
def test_a_glob_takes_no_time_to_speak_of(glob, path):
    began = time.monotonic()
    assert re.match(translate(glob), path) is None
    assert time.monotonic() - began < 2


def test_too_many_choices_are_taken_as_they_stand():
    assert re.match(translate("{a,b}" * 20), "a" * 20) is None


def test_tail_keeps_the_end():
    tail = Tail(100)
    for number in range(1000):
        tail.feed(b"line %d\n" % number)
    assert tail.text().endswith("line 998\nline 999\n")
    assert tail.text().startswith("line 98")
    assert (len(tail.text()) <= 100, tail.lost) == (True, tail.total - 100)
    assert tail.text(20) == "line 998\nline 999\n"
    short = Tail(100)
    short.feed("ü".encode())
    assert (short.text(), short.lost) == ("ü", 0)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x07", "link"),
        ("10%\r20%\r100%\ndone\r\n", "100%\ndone\n"),
        ("a\x00b\x08c\td", "abc\td"),
        ("last\r", "last"),
        ("last\r\r\nnext\r\r", "last\nnext"),
        ("\x1b(Bx\x1b=y", "xy"),
    ],
)
def test_readable(raw, text):
    assert readable(raw) == text


def test_a_line_without_end_takes_no_time():
    began = time.process_time()
    assert len(readable("x" * 1_000_000)) == 1_000_000
    assert time.process_time() - began < 2


def test_diffs(tmp_path):
    assert file_diff(tmp_path, "a", "a") == ()
    assert file_diff(tmp_path, None, "")[0].old_text is None
    assert file_diff(tmp_path, None, "x" * (MOST + 1)) == ()
    assert line_counts("a\nb\nc\n", "a\nB\nB\nc\n") == (2, 1)
    assert line_counts("", "a\n") == (1, 0)
    assert line_counts("a\na\n", "a\n") == (0, 1)


def test_a_digest_takes_either_line_ending():
    made = Digest()
    for piece in ("a\r", "\nb", "\r", "c\r"):
        made.feed(piece)
    assert made.value() == digest("a\nb\rc\r") != digest("a\nb\nc\r")


def test_stamps(tmp_path):
    assert Stamp("x", 1, 1).still(Stamp("x", 2, 2))
    assert not Stamp("x", 1, 1).still(Stamp("y", 1, 1))
    assert Stamp("", 1, 1).still(Stamp("y", 1, 1))
    assert not Stamp("", 1, 1).still(Stamp("", 1, 2))
    seen = SeenFiles()
    for number in range(5000):
        seen.note(tmp_path / str(number), Stamp(str(number)))
    assert (seen.get(tmp_path / "0"), seen.get(tmp_path / "4999")) == (None, Stamp("4999"))


async def test_settings_reach_the_tools_that_take_them(tmp_path, monkeypatch):
    monkeypatch.setenv("KEY", "k")
    (tool,) = catalog.load_all(["run_command"], ToolSettings(withheld=frozenset({"KEY"})))
    assert isinstance(tool, RunCommand)
    assert (await tool.run({"command": "echo [$KEY]"}, context(tmp_path))).text.startswith("[]\n")
