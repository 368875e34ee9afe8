"""Edits as models really send them: what is near lands rightly, nothing wrongly, the rest is shown a place.

The table is data; beside it texts are made and spoilt at random, in every way that models spoil them.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.tools.edits.apply_edits import Edit, replace_all
from runtime.values.errors import ToolError
from tests.runtime.tools.support import counted

ROWS = json.loads((Path(__file__).parents[3] / "data/edit_near_misses.json").read_text())
LANDING = [row for row in ROWS if "gives" in row]
REFUSED = [row for row in ROWS if "says" in row]


def test_the_table_is_what_it_is_said_to_be():
    assert len({row["id"] for row in ROWS}) == len(ROWS) >= 60
    assert len(LANDING) >= 50
    assert len(LANDING) + len(REFUSED) == len(ROWS)


@pytest.mark.parametrize("row", LANDING, ids=lambda row: row["id"])
def test_lands(row):
    done = replace_all(row["file"], [Edit(row["old"], row["new"])])
    assert (done.text, done.places) == (row["gives"], 1)
    # Also when all places were asked for: there is one.
    assert replace_all(row["file"], [Edit(row["old"], row["new"], everywhere=True)]).text == row["gives"]


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row["id"])
def test_is_shown_the_place(row):
    with pytest.raises(ToolError) as caught:
        replace_all(row["file"], [Edit(row["old"], row["new"])])
    assert [said for said in row["says"] if said not in caught.value.message] == []


def test_what_was_done_is_said():
    text = "if a:\n\tb('x')\n"
    assert replace_all(text, [Edit("\tb('x')", "\tb('y')")]).notes == ()
    assert replace_all(text, [Edit("2|    b('x')", "2|    b('y')")]).notes == (
        "the line numbers taken off; old differed from the file in its indentation, which new now follows "
        "(line 2)",
    )
    several = replace_all(text, [Edit("if a", "if c"), Edit("    b('x')\n", "")])
    assert several.text == "if c:\n"
    assert several.notes[0].startswith("edit 2 of 2: old differed from the file in its indentation")


def test_an_edit_that_changes_nothing_is_said():
    with pytest.raises(ToolError, match="the file has the new text already"):
        replace_all("a = 'x'\n", [Edit('a = "x"', "a = 'x'")])
    with pytest.raises(ToolError, match="old and new are the same"):
        replace_all("a\r\nb\n", [Edit("a\nb", "a\r\nb")])


def test_new_lines_have_the_depth_of_the_whole_line_that_is_meant():
    text = "def f():\n    x = 1\n    return x\n"
    literal = replace_all(text, [Edit("x = 1", "x = 1\ny = 2")])
    assert literal.text == "def f():\n    x = 1\ny = 2\n    return x\n"
    meant = replace_all(text, [Edit("x = 1", "x = 1\ny = 2")], as_lines=True)
    assert meant.text == "def f():\n    x = 1\n    y = 2\n    return x\n"
    # It is there letter by letter, from the middle of the indentation on.
    assert replace_all(text, [Edit("  x = 1\n", "")]).text == "def f():\n    return x\n"


def test_a_part_of_a_deeper_line_is_not_the_line():
    text = "def f():\n    if a:\n        return x + 1\n    return x\n"
    with pytest.raises(ToolError, match=r"2 places could be meant \(lines 3, 4\)"):
        replace_all(text, [Edit("      return x", "      return y")])
    assert replace_all(text, [Edit("    return x\n", "    return y\n")]).text == text.replace("x\n", "y\n")
    assert replace_all(text, [Edit("  return x + ", "  return y + ")]).text == text.replace("x +", "y +")


# ---------------------------------------------------------------- at random

Spoil = Callable[[list[str]], list[str]]


def _escaped(line: str) -> str:
    return line.replace("\\", "\\\\").replace('"', '\\"')


def _spread(line: str) -> str:
    bare = line.lstrip()
    return line[: len(line) - len(bare)] + bare.replace(" ", "   ")


SPOILT: dict[str, Spoil] = {
    "deeper": lambda lines: ["    " + line if line else line for line in lines],
    "tabs": lambda lines: [line.replace("    ", "\t") for line in lines],
    "two spaces": lambda lines: [re.sub("^ +", lambda found: found[0][::2], line) for line in lines],
    "spaces behind": lambda lines: [line + "  " for line in lines],
    "numbers": lambda lines: counted("\n".join(lines), 7).split("\n"),
    "arrows": lambda lines: [f"{number:6}\u2192{line}" for number, line in enumerate(lines, 3)],
    "escapes": lambda lines: [_escaped(line) for line in lines],
    "line feeds": lambda lines: ["\\n".join(_escaped(line) for line in lines)],
    "quotes": lambda lines: [line.replace("'", '"') for line in lines],
    "entities": lambda lines: [line.replace("&", "&amp;").replace("<", "&lt;") for line in lines],
    "runs": lambda lines: [_spread(line) for line in lines],
    "curly": lambda lines: [re.sub('"(.*?)"', "\u201c\\1\u201d", line) for line in lines],
}
WORDS = [
    "a = 1",
    'say("hi there")',
    "b(c, d)",
    "x < y & z",
    "it('s')",
    "go \\d",
    "}",
    "# it's new",
    "return 'ok'",
]
LINE = st.tuples(st.integers(0, 3), st.sampled_from(WORDS), st.integers(0, 9))


@settings(max_examples=300, deadline=None)
@given(
    lines=st.lists(LINE, min_size=3, max_size=9),
    data=st.data(),
    name=st.sampled_from(sorted(SPOILT)),
    change=st.sampled_from(["more", "less", "other"]),
)
def test_a_spoilt_edit_lands_where_the_right_one_does_or_nowhere(lines, data, name, change):
    text = [f"{'    ' * depth}{word} {number}" for depth, word, number in lines]
    start = data.draw(st.integers(0, len(text) - 2))
    end = data.draw(st.integers(start + 1, len(text)))
    old = text[start:end]
    at = data.draw(st.integers(0, len(old) - 1))
    indent = old[at][: len(old[at]) - len(old[at].lstrip())]
    new = [*old[: at + (change == "more")], *([] if change == "less" else [f"{indent}other"]), *old[at + 1 :]]
    wanted = "\n".join([*text[:start], *new, *text[end:]])
    spoil = SPOILT[name]
    # An old text that came unspoilt says nothing of what the new one means.
    if not new or spoil(old) == old or "\n".join(text).count("\n".join(old)) != 1:
        return
    try:
        done = replace_all("\n".join(text), [Edit("\n".join(spoil(old)), "\n".join(spoil(new)))])
    except ToolError:
        return
    assert done.text == wanted, (name, old, new)
