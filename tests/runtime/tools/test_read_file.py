"""read_file: text with its line numbers, ranges, encodings, the editor's buffers, and what it refuses."""

import json
import os

import pytest
import trio

from runtime.tools.files import line_ranges
from runtime.tools.files.read_file import ReadFile
from runtime.tools.sandbox.roots import locate
from runtime.values.errors import ToolError
from runtime.values.events import Location
from tests.runtime.tools.support import Editor, context, counted, text_of, write, write_sparse

TOOL = ReadFile()


@pytest.mark.parametrize(
    "content",
    ["a\nb\n", "no newline at the end", "dos\r\nlines\r\n", "ünï → 漢 🎉\n", "\n", "a\n\n\nb", "\x1b[1m x\n"],
)
async def test_whole_file_is_given_line_by_line(tmp_path, content):
    write(tmp_path, {"f": content})
    assert await text_of(TOOL, context(tmp_path), path="f") == counted(content)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"line": 2}, "2|two\n3|three\n4|four\n[lines 2-4 of 4]"),
        ({"limit": 2}, "1|one\n2|two\n[lines 1-2 of 4; read on with line=3]"),
        ({"line": 2, "limit": 1}, "2|two\n[lines 2-2 of 4; read on with line=3]"),
        ({"line": 4, "limit": 10}, "4|four\n[lines 4-4 of 4]"),
        ({"line": 1, "limit": 4}, "1|one\n2|two\n3|three\n4|four\n"),
        ({"line": 1.0, "limit": None}, "1|one\n2|two\n3|three\n4|four\n"),
    ],
)
async def test_ranges(tmp_path, arguments, expected):
    write(tmp_path, {"f": "one\ntwo\nthree\nfour\n"})
    on_disk = await text_of(TOOL, context(tmp_path), path="f", **arguments)
    editor = Editor({tmp_path / "f": "one\ntwo\nthree\nfour\n"})
    in_editor = await text_of(TOOL, context(tmp_path, client=editor), path="f", **arguments)
    assert on_disk == in_editor == expected


async def test_past_the_end(tmp_path):
    write(tmp_path, {"f": "one\ntwo", "empty": ""})
    with pytest.raises(ToolError, match="f has 2 lines; line 3 is past its end"):
        await text_of(TOOL, context(tmp_path), path="f", line=3)
    assert await text_of(TOOL, context(tmp_path), path="empty") == "[the file is empty]"


@pytest.mark.parametrize(
    ("data", "text", "note"),
    [
        ("é\n".encode("utf-8-sig"), "é\n", "UTF-8 with a byte order mark"),
        ("é\n".encode("utf-16"), "é\n", "UTF-16"),
        (b"\xfe\xff" + "é\n".encode("utf-16-be"), "é\n", "big endian"),
        ("é\n".encode("latin-1"), "é\n", "not UTF-8: decoded as Windows-1252"),
        (b"\x93quoted\x94 \x81\n", "“quoted” \ufffd\n", "some bytes are not valid text"),
        (b"\xff\xfe" + b"a\0b", "a\ufffd", "some bytes are not valid text"),
    ],
)
async def test_encodings(tmp_path, data, text, note):
    write(tmp_path, {"f": data})
    given = await text_of(TOOL, context(tmp_path), path="f")
    assert given.startswith(f"1|{text}")
    assert note in given[len(text) + 2 :]


async def test_damage_behind_the_sample_is_said(tmp_path):
    write(tmp_path, {"f": b"a\n" * 70_000 + b"\xff\0end\n"})
    given = await text_of(TOOL, context(tmp_path), path="f", line=70_001)
    assert given.startswith(
        "70001|\ufffd\ufffdend\n[lines 70001-70001 of 70001; some bytes are not valid text"
    )


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n\0\0\0", b"\x01\x02\x03\x04\x05abc", b"text\0more"])
async def test_binary(tmp_path, data):
    write(tmp_path, {"f.bin": data})
    editor = Editor()
    with pytest.raises(ToolError, match=rf"f.bin is a binary file \({len(data)} bytes\)"):
        await text_of(TOOL, context(tmp_path, client=editor), path="f.bin")
    assert editor.asked == []


async def test_unsaved_buffer_wins_and_a_new_one_needs_no_file(tmp_path):
    write(tmp_path, {"f": "saved"})
    editor = Editor({tmp_path / "f": "unsaved", tmp_path / "new": "never saved"})
    where = context(tmp_path, client=editor)
    assert await text_of(TOOL, where, path="f") == "1|unsaved"
    assert await text_of(TOOL, where, path="new") == "1|never saved"


async def test_editor_is_asked_under_its_own_spelling_of_the_folder(tmp_path):
    write(tmp_path, {"real/sub/f": "saved"})
    (tmp_path / "link").symlink_to("real")
    editor = Editor({tmp_path / "link/sub/f": "unsaved"})
    assert await text_of(TOOL, context(tmp_path / "link", client=editor), path="sub/f") == "1|unsaved"


async def test_editor_is_never_asked_for_what_is_outside_or_special(tmp_path):
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "fifo")
    editor = Editor({tmp_path / "link": "leak"})
    for raw in ("link", "fifo", "../x", "/etc/passwd"):
        with pytest.raises(ToolError):
            await text_of(TOOL, context(tmp_path, client=editor), path=raw)
    assert editor.asked == []


async def test_missing_names_what_is_near(tmp_path):
    write(tmp_path, {"src/app.py": "", "src/App_test.py": "", "src/app.js": "", "src/zzz": ""})
    with pytest.raises(ToolError, match=r"src/ap\.py does not exist; near names in src: app\.py") as caught:
        await text_of(TOOL, context(tmp_path), path="src/ap.py")
    assert "zzz" not in str(caught.value)
    with pytest.raises(ToolError, match="no folder scr in the top folder; near names in the top folder: src"):
        await text_of(TOOL, context(tmp_path), path="scr/app.py")
    with pytest.raises(ToolError, match="`~` is not expanded"):
        await text_of(TOOL, context(tmp_path), path="~/notes")
    with pytest.raises(ToolError, match="src is a folder; use list_dir"):
        await text_of(TOOL, context(tmp_path), path="src")


async def test_a_file_used_as_a_folder(tmp_path):
    write(tmp_path, {"f": "x"})
    with pytest.raises(ToolError, match="f/x does not exist"):
        await text_of(TOOL, context(tmp_path), path="f/x")


async def test_large_file_is_cut_at_a_line_and_says_how_to_go_on(tmp_path):
    line = "x" * 99 + "\n"
    write(tmp_path, {"f": line * 30_000})
    given = await text_of(TOOL, context(tmp_path), path="f")
    whole = line_ranges.MAX_TEXT // 100
    assert given == counted(line * whole) + f"[lines 1-{whole} of 30000; read on with line={whole + 1}]"


async def test_range_far_in_a_huge_sparse_file_streams(tmp_path):
    write_sparse(tmp_path / "f", b"text\n" * 20_000, 1 << 33)
    given = await text_of(TOOL, context(tmp_path), path="f", line=19_999, limit=1)
    assert given == "19999|text\n[lines 19999-19999; read on with line=20000]"


async def test_huge_line_is_cut_and_said(tmp_path):
    write(tmp_path, {"f": "x" * 3_000_000 + "\nnext\n", "g": "x" * 3_000_000})
    given = await text_of(TOOL, context(tmp_path), path="f")
    assert given.startswith("1|" + "x" * 1000)
    assert "line 1 is longer than 2,097,152 characters and was cut" in given[-300:]
    assert given.endswith("lines 1-1 of 2; read on with line=2]")
    assert len(given) < line_ranges.MAX_TEXT + 300
    assert "read on" not in (await text_of(TOOL, context(tmp_path), path="g"))[-300:]


async def test_unicode_and_odd_names(tmp_path):
    write(tmp_path, {"ünïcode 漢.txt": "u", "new\nline": "n", " lead": "l"})
    where = context(tmp_path)
    assert await text_of(TOOL, where, path="ünïcode 漢.txt") == "1|u"
    assert await text_of(TOOL, where, path="new\nline") == "1|n"
    assert TOOL.view({"path": "new\nline"}, where).title == 'Read "new\\nline"'


async def test_change_during_the_read_is_said(tmp_path):
    """The file grows between two chunks; what was opened is read on, and the change is named."""
    write(tmp_path, {"f": "a\n" * 10})
    file = line_ranges.look(place := _place(tmp_path, "f"))
    assert file is not None

    def grow() -> bool:
        with open(tmp_path / "f", "r+b") as handle:
            handle.truncate(12)
        return False

    reading = line_ranges.read(place, file, 1, None, grow)
    assert "the file changed while it was read" in reading.notes


async def test_replaced_during_the_read_gives_what_was_opened(tmp_path):
    write(tmp_path, {"f": "a\n" * 10})
    place = _place(tmp_path, "f")
    file = line_ranges.look(place)
    assert file is not None

    def swap() -> bool:
        (tmp_path / "f").unlink(missing_ok=True)
        (tmp_path / "f").symlink_to("/etc/passwd")
        return False

    assert line_ranges.read(place, file, 1, None, swap).window.text == "a\n" * 10


async def test_a_line_too_far_inside_is_not_looked_for_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(line_ranges, "SECONDS", 0.1)
    write_sparse(tmp_path / "f", b"a" * 70_000, 1 << 40)
    with trio.fail_after(20), pytest.raises(ToolError, match="too large to find lines so far inside it"):
        await text_of(TOOL, context(tmp_path), path="f", line=2)


async def test_cancel_returns_at_once_and_stops_the_thread(tmp_path):
    # One line of a terabyte: counting to the next one would take an hour.
    write_sparse(tmp_path / "f", b"a" * 70_000, 1 << 40)
    with trio.fail_after(10):
        with trio.move_on_after(0.1) as scope:
            await text_of(TOOL, context(tmp_path), path="f", line=2)
        assert scope.cancelled_caught
        # The thread saw it too: its place among the workers is free again.
        limiter = trio.to_thread.current_default_thread_limiter()
        for _ in range(int(limiter.total_tokens)):
            await limiter.acquire_on_behalf_of(object())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "read_file needs the argument path"),
        ({"path": 3}, "path must be a string, not 3"),
        ({"path": ""}, "path is empty"),
        ({"path": None}, "read_file needs the argument path"),
        ({"path": "f", "line": 0}, "line must be a whole number, 1 or more, not 0"),
        ({"path": "f", "line": "2"}, 'line must be a whole number, 1 or more, not "2"'),
        ({"path": "f", "line": True}, "line must be a whole number, 1 or more, not true"),
        ({"path": "f", "limit": 1.5}, "limit must be a whole number, 1 or more, not 1.5"),
        ({"path": "f", "offset": 1}, "unknown argument offset; read_file takes path, line, limit"),
    ],
)
async def test_wrong_arguments(tmp_path, arguments, said):
    write(tmp_path, {"f": "x"})
    with pytest.raises(ToolError, match=said):
        await TOOL.run(arguments, context(tmp_path))


@pytest.mark.parametrize(
    ("arguments", "title", "locations"),
    [
        ({"path": "src/app.py"}, "Read src/app.py", [("src/app.py", None)]),
        ({"path": "./src/../src/app.py", "line": 3}, "Read src/app.py:3", [("src/app.py", 3)]),
        ({"path": "a", "line": 3, "limit": 5}, "Read a:3-7", [("a", 3)]),
        ({"path": "/etc/passwd"}, "Read /etc/passwd", [("/etc/passwd", None)]),
        ({"path": 7}, "Read a file", []),
        ({}, "Read a file", []),
        ({"path": "a\0"}, "Read a file", []),
        ({"path": "a", "line": "x"}, "Read a", [("a", None)]),
    ],
)
def test_view(tmp_path, arguments, title, locations):
    view = TOOL.view(arguments, context(tmp_path))
    assert view.title == title
    assert list(view.locations) == [Location(str(tmp_path / path), line) for path, line in locations]


def test_spec_is_compact_json_with_the_three_parameters():
    schema = json.loads(TOOL.spec.parameters)
    assert list(schema["properties"]) == ["path", "line", "limit"]
    assert schema["required"] == ["path"]
    assert TOOL.spec.parameters == json.dumps(schema, separators=(",", ":"))


def _place(folder, name):
    return locate(name, context(folder))
