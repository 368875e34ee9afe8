"""list_dir: what is listed, what is not entered, and that a cut is said."""

import os

import pytest
import trio

from runtime.tools.files import list_dir
from runtime.tools.files.list_dir import ListDir
from runtime.tools.sandbox import roots
from runtime.values.errors import ToolError
from tests.runtime.tools.support import context, text_of, write

TOOL = ListDir()


async def test_sorted_with_slashes_sizes_links_and_hidden_files(tmp_path):
    write(tmp_path, {"b.txt": "12345", "a/deep.txt": "", ".env": "x", ".git/config": "", "big": b"x" * 1234})
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "linked-folder").symlink_to("a")
    os.mkfifo(tmp_path / "pipe")
    assert await text_of(TOOL, context(tmp_path)) == "\n".join(
        [
            ".env  1 bytes",
            ".git/",
            "a/",
            "b.txt  5 bytes",
            "big  1,234 bytes",
            "link -> /etc/passwd",
            "linked-folder -> a",
            "pipe  (a FIFO)",
        ]
    )


async def test_depth_gives_paths_that_other_tools_take_and_never_enters_git_or_links(tmp_path):
    write(tmp_path, {"a/b/c/d.txt": "d", "a/x": "", ".git/config": "", "a/.git/HEAD": ""})
    (tmp_path / "a/up").symlink_to("..")
    where = context(tmp_path)
    expected = [".git/", "a/", "a/.git/", "a/b/", "a/b/c/", "a/up -> ..", "a/x  0 bytes"]
    assert (await text_of(TOOL, where, depth=3)).split("\n") == expected
    assert await text_of(TOOL, where, path="a/b/c", depth=5) == "a/b/c/d.txt  1 bytes"
    assert await text_of(TOOL, where, path=".git") == ".git/config  0 bytes"


async def test_other_root_is_shown_absolute(tmp_path):
    write(tmp_path, {"one/a": "", "two/b": ""})
    where = context(tmp_path / "one", tmp_path / "two")
    assert await text_of(TOOL, where, path=f"{tmp_path}/two") == f"{tmp_path}/two/b  0 bytes"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("two\nlines", '"two\\nlines"  0 bytes'),
        ("a -> b", '"a -> b"  0 bytes'),
        ("a  9 bytes", '"a  9 bytes"  0 bytes'),
        (" lead", '" lead"  0 bytes'),
        ('"', '"\\""  0 bytes'),
        ("\u202eevil", '"\\u202eevil"  0 bytes'),
        ("漢 ü.txt", "漢 ü.txt  0 bytes"),
        ("bad\udcff", '"bad\\udcff"  0 bytes'),
    ],
)
async def test_odd_names_stay_on_one_line_and_unambiguous(tmp_path, name, line):
    write(tmp_path, {name: ""})
    assert await text_of(TOOL, context(tmp_path)) == line


async def test_a_folder_with_an_odd_name_keeps_its_slash_outside_the_quotes(tmp_path):
    write(tmp_path, {"x\ny/z": ""})
    assert (await text_of(TOOL, context(tmp_path), depth=2)).split("\n") == ['"x\\ny"/', '"x\\ny/z"  0 bytes']


async def test_cut_leaves_out_the_deepest_and_says_how_many(tmp_path, monkeypatch):
    monkeypatch.setattr(list_dir, "_SHOWN", 4)
    write(tmp_path, {f"a/{number}": "" for number in range(5)} | {"b": "", "c": ""})
    lines = (await text_of(TOOL, context(tmp_path), depth=2)).split("\n")
    assert lines[:-1] == ["a/", "a/0  0 bytes", "b  0 bytes", "c  0 bytes"]
    assert lines[-1] == "[4 more; list a folder below, or use a smaller depth]"


async def test_not_all_counted_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(list_dir, "_SHOWN", 2)
    monkeypatch.setattr(list_dir, "_COUNTED", 3)
    write(tmp_path, {str(number): "" for number in range(9)})
    assert "[1 more, and others that were not counted;" in await text_of(TOOL, context(tmp_path))


async def test_empty(tmp_path):
    (tmp_path / "none").mkdir()
    assert await text_of(TOOL, context(tmp_path), path="none") == "[none is empty]"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"path": ".."}, "outside"),
        ({"path": "link"}, "outside"),
        ({"path": "f"}, "f is a file; use read_file"),
        ({"path": "pipe"}, "pipe is a FIFO, not a folder"),
        ({"path": "dirr"}, "dirr does not exist; near names in the top folder: dir"),
        ({"depth": 0}, "depth must be a whole number from 1 to 5, not 0"),
        ({"depth": 99}, "depth must be a whole number from 1 to 5, not 99"),
        ({"path": ["f"]}, "path must be a string, not"),
        ({"recursive": True}, "unknown argument recursive; list_dir takes path, depth"),
    ],
)
async def test_refused(tmp_path, arguments, said):
    write(tmp_path, {"f": "", "dir/x": ""})
    (tmp_path / "link").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ToolError, match=said):
        await TOOL.run(arguments, context(tmp_path))


async def test_a_folder_that_cannot_be_entered_is_said_in_its_place(tmp_path, monkeypatch):
    write(tmp_path, {"a/x": "", "b/y": ""})

    def refuse(place):
        if place.parts == ("a",):
            raise PermissionError(13, "Permission denied")
        return roots.opened_folder(place)

    monkeypatch.setattr(list_dir, "opened_folder", refuse)
    assert (await text_of(TOOL, context(tmp_path), depth=2)).split("\n") == [
        "a/",
        "[a may not be read (permission denied)]",
        "b/",
        "b/y  0 bytes",
    ]


async def test_cancel(tmp_path):
    with trio.CancelScope() as scope:
        scope.cancel()
        await text_of(TOOL, context(tmp_path))
    assert scope.cancelled_caught


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        ({}, "List ."),
        ({"path": "src/"}, "List src"),
        ({"path": 3}, "List ."),
        ({"path": "\0"}, "List a folder"),
    ],
)
def test_view(tmp_path, arguments, title):
    assert TOOL.view(arguments, context(tmp_path)).title == title
