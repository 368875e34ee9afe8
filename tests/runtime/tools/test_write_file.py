"""write_file: new files and folders, whole texts over old ones, and what it refuses."""

import os
import stat

import pytest
import trio

from runtime.tools.files.read_file import ReadFile
from runtime.tools.files.write_file import WriteFile
from runtime.values.errors import ToolError
from runtime.values.events import FileDiff
from tests.runtime.tools.support import Editor, context, text_of, write

TOOL = WriteFile()


async def put(where, path: str, content: str):
    return await TOOL.run({"path": path, "content": content}, where)


async def test_a_new_file_in_new_folders(tmp_path):
    outcome = await put(context(tmp_path), "a/b/c.txt", "one\ntwo\n")
    assert (tmp_path / "a/b/c.txt").read_text() == "one\ntwo\n"
    assert outcome.text == "Created a/b/c.txt, 2 lines."
    assert outcome.diffs == (FileDiff(str(tmp_path / "a/b/c.txt"), None, "one\ntwo\n"),)
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((tmp_path / "a/b/c.txt").stat().st_mode) == 0o666 & ~umask


async def test_an_empty_file(tmp_path):
    assert (await put(context(tmp_path), "f", "")).text == "Created f, 0 lines."
    assert (tmp_path / "f").read_bytes() == b""


async def test_over_an_old_one(tmp_path):
    write(tmp_path, {"f": "old"})
    (tmp_path / "f").chmod(0o640)
    outcome = await put(context(tmp_path), "f", "new\n")
    assert outcome.text == "Overwrote f, 1 line."
    assert outcome.diffs == (FileDiff(str(tmp_path / "f"), "old", "new\n"),)
    assert (tmp_path / "f").read_text() == "new\n"
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o640


async def test_the_same_text_changes_nothing(tmp_path):
    write(tmp_path, {"f": "same\n"})
    before = (tmp_path / "f").stat().st_ino
    outcome = await put(context(tmp_path), "f", "same\n")
    assert outcome.text == "f has this text already (1 line); nothing changed."
    assert ((tmp_path / "f").stat().st_ino, outcome.diffs) == (before, ())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\r\nb\r\n", b"x\r\ny\r\n"),
        ("ä".encode("utf-16"), "x\ny\n".encode("utf-16")),
        ("ä\n".encode("utf-8-sig"), "x\ny\n".encode("utf-8-sig")),
        (b"a\nb\r\n", b"x\ny\n"),
    ],
)
async def test_endings_and_encoding_of_the_old_one_stay(tmp_path, before, after):
    write(tmp_path, {"f": before})
    await put(context(tmp_path), "f", "x\ny\n")
    assert (tmp_path / "f").read_bytes() == after


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("folder", "folder is a folder"),
        (".", "is a folder"),
        ("new/", "does not end in a slash"),
        ("../x", "outside the folders"),
        ("f/x", "not a folder"),
        ("image.png", "is a binary file"),
        ("n" * 300, "name too long"),
        ("in\u200bvisible", "characters that cannot be seen"),
        ("folder\u202e/x", "characters that cannot be seen"),
        ("", "path is empty"),
    ],
)
async def test_refused(tmp_path, path, said):
    write(tmp_path, {"f": "f", "folder/x": "x", "image.png": b"\x89PNG\r\n\x1a\n\0\0"})
    with pytest.raises(ToolError, match=said):
        await put(context(tmp_path), path, "text")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["f", "folder", "image.png"]


async def test_text_that_no_file_can_hold(tmp_path):
    with pytest.raises(ToolError, match=r"has no \\ud800"):
        await put(context(tmp_path), "f", "\ud800")
    with pytest.raises(ToolError, match="too large"):
        await put(context(tmp_path), "f", "x" * (8 * 1024 * 1024 + 1))


async def test_a_read_only_folder(tmp_path, monkeypatch):
    real = os.open

    def closed(path, flags, *arguments, **options):
        if flags & os.O_CREAT:
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *arguments, **options)

    monkeypatch.setattr(os, "open", closed)
    with pytest.raises(ToolError, match=r"f may not be written \(permission denied\)"):
        await put(context(tmp_path), "f", "x")


async def test_a_full_disk_leaves_the_old_text_and_no_rest(tmp_path, monkeypatch):
    write(tmp_path, {"f": "old"})

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ToolError, match="the disk is full"):
        await put(context(tmp_path), "f", "new")
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("f", "old")]


async def test_stale(tmp_path):
    write(tmp_path, {"f": "a"})
    where = context(tmp_path)
    await text_of(ReadFile(), where, path="f")
    write(tmp_path, {"f": "b"})
    with pytest.raises(ToolError, match="changed since it was read here"):
        await put(where, "f", "c")
    # One that went away can be made anew.
    (tmp_path / "f").unlink()
    await put(where, "f", "c")
    assert (tmp_path / "f").read_text() == "c"


async def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path, monkeypatch):
    real = os.fsync

    def appears(descriptor):
        real(descriptor)
        (tmp_path / "f").write_text("by another")

    monkeypatch.setattr(os, "fsync", appears)
    with pytest.raises(ToolError, match="made by another program meanwhile"):
        await put(context(tmp_path), "f", "mine")
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("f", "by another")]


async def test_through_an_editor(tmp_path):
    editor = Editor(writes=True)
    where = context(tmp_path, client=editor)
    assert (await put(where, "new.txt", "text\n")).text.startswith("Created")
    assert editor.written == [(tmp_path / "new.txt", "text\n")]
    assert not (tmp_path / "new.txt").exists()
    assert (await put(where, "new.txt", "more\n")).text.startswith("Overwrote")


async def test_an_editor_is_told_its_own_spelling_of_the_folder(tmp_path):
    write(tmp_path, {"real/x": "x"})
    (tmp_path / "link").symlink_to("real")
    editor = Editor(writes=True)
    outcome = await put(context(tmp_path / "link", client=editor), "f", "x")
    assert editor.written[0][0] == tmp_path / "link/f"
    assert outcome.diffs[0].path == str(tmp_path / "link/f")


async def test_request(tmp_path):
    write(tmp_path, {"f": "old"})
    request = await TOOL.request({"path": "f", "content": "new"}, context(tmp_path))
    assert (request.action, request.diffs[0].new_text) == ("write", "new")
    with pytest.raises(ToolError, match="is a folder"):
        await TOOL.request({"path": ".", "content": "x"}, context(tmp_path))
    assert (tmp_path / "f").read_text() == "old"


async def test_cancelled_before_it_began(tmp_path):
    with trio.CancelScope() as scope:
        scope.cancel()
        await put(context(tmp_path), "f", "x")
    assert scope.cancelled_caught
    assert list(tmp_path.iterdir()) == []
