"""What edit_file and write_file say of what they did: the lines as they are, a file that broke, a miss."""

import pytest

from runtime.tools.files.edit_file import EditFile
from runtime.tools.files.write_file import WriteFile
from runtime.values.errors import ToolError
from tests.runtime.tools.support import context, text_of, write

TOOL = EditFile()


def edits(*pairs: tuple[str, str]) -> list[dict[str, object]]:
    return [{"old": old, "new": new} for old, new in pairs]


async def edit(where, *pairs, path="f"):
    return await TOOL.run({"path": path, "edits": edits(*pairs)}, where)


async def test_one_edit_beside_the_path(tmp_path):
    write(tmp_path, {"f": "a b b"})
    where = context(tmp_path)
    assert "+1 -1 lines.\n1|A b b" in await text_of(TOOL, where, path="f", old="a", new="A")
    assert "2 places" in await text_of(TOOL, where, path="f", old="b", new="", all=True, edits=[])
    assert (tmp_path / "f").read_text() == "A  "
    await text_of(TOOL, where, path="f", old="", new="", edits=edits(("A", "B")))
    assert (tmp_path / "f").read_text() == "B  "


async def test_the_changed_lines_are_shown_as_they_are_now(tmp_path):
    lines = [f"line {number}\n" for number in range(1, 41)]
    write(tmp_path, {"f": "".join(lines)})
    outcome = await edit(
        context(tmp_path), ("line 5\n", "line 5\nmore\n"), ("line 30\n", ""), ("line 31", "31")
    )
    assert outcome.text.split("\n") == [
        "Edited f: 3 places, +2 -2 lines.",
        *("3|line 3", "4|line 4", "5|line 5", "6|more", "7|line 6", "8|line 7", "9|line 8"),
        "…",
        *("28|line 27", "29|line 28", "30|line 29", "31|31", "32|line 32", "33|line 33", "34|line 34"),
    ]


async def test_many_changed_lines_are_not_all_shown(tmp_path):
    write(tmp_path, {"f": "x\n" + "\n" * 8 + "x\n\n\n\n\n\n\n\n\n" * 99})
    arguments = {"path": "f", "old": "x", "new": "y" * 500, "all": True}
    text = (await TOOL.run(arguments, context(tmp_path))).text
    assert "100 places, +100 -100 lines." in text
    assert text.endswith("\n…")
    assert (text.count("\n"), len(text) < 9000) == (61, True)


BROKEN = [
    ("a.py", "def f():\n    return 1\n", "return 1", "return 1 +", "line 2: invalid syntax"),
    ("a.json", '{"a": 1}\n', ": 1", ": 1,", "line 1: "),
    ("a.toml", "a = 1\n", "= 1", "=", "Invalid value (at line 1, column 4)"),
    ("a.yaml", "a: [1]\nb: 2\n", "[1]", "[1", "line 2: did not find expected ',' or ']'"),
]


@pytest.mark.parametrize(("name", "text", "old", "new", "said"), BROKEN)
async def test_a_file_that_an_edit_breaks_is_said_at_once(tmp_path, name, text, old, new, said):
    write(tmp_path, {name: text, f"{name}.txt": text})
    where = context(tmp_path)
    assert f"\n[the file is broken now: {said}" in (await edit(where, (old, new), path=name)).text
    assert "broken" not in (await edit(where, (old, new), path=f"{name}.txt")).text
    # It was broken before: that may be a dialect of its own.
    assert "broken" not in (await edit(where, (new, f"{new} "), path=name)).text
    assert "broken" not in (await edit(where, (f"{new} ", old), path=name)).text
    created = await WriteFile().run({"path": f"new-{name}", "content": text.replace(old, new)}, where)
    assert f"\n[the file is broken: {said}" in created.text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tsconfig.json", "{} // mine\n"),
        ("chart.yaml", "a: {{ .Values.a }}\n"),
        ("a.toml", "a" + ".a" * 100_000 + "\n"),
        ("deep.json", "[" * 100_000),
        ("deep.py", "x = " + "-" * 90_000 + "1\n"),
        ("large.py", "(" * 300_000),
    ],
)
async def test_what_cannot_be_told_is_not_called_broken(tmp_path, name, text):
    created = await WriteFile().run({"path": name, "content": text}, context(tmp_path))
    assert created.text == f"Created {name}, 1 line."


async def test_the_second_miss_in_a_row_shows_more(tmp_path):
    write(tmp_path, {"f": "".join(f"line {number} of the file\n" for number in range(1, 301))})
    where = context(tmp_path)
    shown = []
    for _ in range(2):
        with pytest.raises(ToolError, match="line 150 is") as caught:
            await edit(where, ("line 150 of a file\n", "x"))
        shown.append(caught.value.message)
    assert shown[0].split("\n")[1:] == [f"{number}|line {number} of the file" for number in range(147, 154)]
    assert "110|line 110 of the file" in shown[1]
    await edit(where, ("line 1 of", "first of"))
    with pytest.raises(ToolError) as caught:
        await edit(where, ("line 150 of a file\n", "x"))
    assert "110|" not in caught.value.message


MEANT = [
    # A line for a line at its depth, and one behind it.
    ("x = 1", "x = 1\ny = 2", "def f():\n    x = 1\n    y = 2\n    return x\n"),
    # The new text alone was escaped once too often.
    ("    x = 1", "    x = 1\\n    y = 2", "def f():\n    x = 1\n    y = 2\n    return x\n"),
    ("    return x", '    return \\"x\\"', 'def f():\n    x = 1\n    return "x"\n'),
]


@pytest.mark.parametrize(("old", "new", "after"), MEANT)
async def test_an_edit_that_would_break_the_file_to_the_letter_is_taken_as_it_is_meant(
    tmp_path, old, new, after
):
    write(
        tmp_path, {"f.py": "def f():\n    x = 1\n    return x\n", "f": "def f():\n    x = 1\n    return x\n"}
    )
    where = context(tmp_path)
    assert "broken" not in (await edit(where, (old, new), path="f.py")).text
    assert (tmp_path / "f.py").read_text() == after
    # Where nobody can tell, it is the letter.
    await edit(where, (old, new))
    assert (tmp_path / "f").read_text() == "def f():\n    x = 1\n    return x\n".replace(old, new)
