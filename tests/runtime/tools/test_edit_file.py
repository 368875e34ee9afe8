"""edit_file: unique, all or none; endings and encodings stay; nothing stale; by the editor or not.

What of a near miss lands, and what is said of the rest, is in `edits/`; results are in `test_edit_results`.
"""

import os
import stat

import pytest
import trio

from runtime.tools.files.edit_file import EditFile
from runtime.tools.files.read_file import ReadFile
from runtime.tools.files.write_file import WriteFile
from runtime.values.errors import ToolError
from runtime.values.events import FileDiff
from tests.runtime.tools.support import Editor, context, text_of, write

TOOL = EditFile()


def edits(*pairs: tuple[str, str]) -> list[dict[str, object]]:
    return [{"old": old, "new": new} for old, new in pairs]


async def edit(where, *pairs, path="f"):
    return await TOOL.run({"path": path, "edits": edits(*pairs)}, where)


async def test_several_edits_at_once_with_a_diff(tmp_path):
    write(tmp_path, {"src/a.py": "one\ntwo\nthree\n"})
    where = context(tmp_path)
    outcome = await edit(where, ("one", "1"), ("three\n", "3\n4\n"), path="src/a.py")
    assert (tmp_path / "src/a.py").read_text() == "1\ntwo\n3\n4\n"
    assert outcome.text == "Edited src/a.py: 2 places, +3 -2 lines.\n1|1\n2|two\n3|3\n4|4"
    path = str(tmp_path / "src/a.py")
    assert outcome.diffs == (FileDiff(path, "one\ntwo\nthree\n", "1\ntwo\n3\n4\n"),)
    assert (outcome.failed, outcome.terminal_id) == (False, "")


async def test_an_edit_builds_on_the_one_before_it(tmp_path):
    write(tmp_path, {"f": "a"})
    await edit(context(tmp_path), ("a", "b"), ("b", "c"))
    assert (tmp_path / "f").read_text() == "c"


async def test_everywhere(tmp_path):
    write(tmp_path, {"f": "x x x"})
    given = {"path": "f", "edits": [{"old": "x", "new": "y", "all": True}]}
    assert "3 places" in (await TOOL.run(given, context(tmp_path))).text
    assert (tmp_path / "f").read_text() == "y y y"


FAULTS = [
    ((("no such", "y"),), r"old does not stand in the file; the file is:\n1\|x1\n2\|x2\n3\|value"),
    ((("x", "y"),), r"old stands at 2 places \(lines 1, 2\); give more of the text around it, or set all"),
    ((("", "y"),), "old is empty"),
    ((("x1", "x1"),), "old and new are the same"),
    ((("x1", "y"), ("gone", "z")), "edit 2 of 2: old does not stand"),
    (
        (("value = compute(1)", "z"),),
        r"line 3 is 'value = compute\(2\)' where old has 'value = compute\(1\)'",
    ),
    ((("value = compute(1)", "value = compute(2)"),), "seems to be made already"),
    ((("never there", "value = compute(2)"),), "old does not stand in the file; the file is"),
]


@pytest.mark.parametrize(("pairs", "said"), FAULTS)
async def test_what_cannot_be_made_changes_nothing(tmp_path, pairs, said):
    text = "x1\nx2\nvalue = compute(2)\n"
    write(tmp_path, {"f": text})
    with pytest.raises(ToolError, match=said):
        await edit(context(tmp_path), *pairs)
    assert (tmp_path / "f").read_text() == text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "edit_file needs the argument path"),
        ({"path": "f"}, "edit_file needs either old and new, or edits. For example: "),
        ({"path": "f", "edits": []}, "edit_file needs either old and new, or edits"),
        ({"path": "f", "edits": "x"}, "edits must be a list of objects, not empty"),
        ({"path": "f", "old": "a"}, "edit_file needs the argument new"),
        ({"path": "f", "old": "a", "new": "b", "edits": edits(("a", "c"))}, "either old and new, or edits"),
        ({"path": "f", "edits": ["x"]}, "edits, entry 1: must be an object"),
        ({"path": "f", "edits": [{"old": "a"}]}, "edits, entry 1 needs the argument new"),
        ({"path": "f", "edits": [{"old": "a", "new": 1}]}, "new must be a string"),
        ({"path": "f", "edits": [{"old": "a", "new": "b", "x": 1}]}, "unknown argument x"),
        ({"path": "none", "edits": edits(("a", "b"))}, "none does not exist"),
        ({"path": "folder", "edits": edits(("a", "b"))}, "folder is a folder"),
        ({"path": "folder/", "edits": edits(("a", "b"))}, "does not end in a slash"),
        ({"path": "../f", "edits": edits(("a", "b"))}, "outside the folders"),
        ({"path": "binary", "edits": edits(("a", "b"))}, "binary is a binary file"),
        ({"path": "damaged", "edits": edits(("a", "b"))}, "holds bytes that are no text"),
    ],
)
async def test_bad_calls(tmp_path, arguments, said):
    write(tmp_path, {"f": "a", "folder/x": "x", "binary": b"a\0b", "damaged": b"\xef\xbb\xbf" + b"ok \xff"})
    with pytest.raises(ToolError, match=said):
        await TOOL.run(arguments, context(tmp_path))


ENCODED = [
    (b"a\r\nb\r\nc\r\n", b"a\r\nB\r\nB\r\nc\r\n"),
    (b"a\nb\r\nc\n", b"a\nB\nB\r\nc\n"),
    ("ä\nb\n".encode("utf-8-sig"), "ä\nB\nB\n".encode("utf-8-sig")),
    ("ä\nb\n".encode("utf-16"), "ä\nB\nB\n".encode("utf-16")),
    ("ä\nb\n".encode("cp1252"), "ä\nB\nB\n".encode("cp1252")),
    (b"b", b"B\nB"),
]


@pytest.mark.parametrize(("before", "after"), ENCODED)
async def test_endings_encoding_and_mark_stay(tmp_path, before, after):
    write(tmp_path, {"f": before})
    await edit(context(tmp_path), ("b", "B\nB"))
    assert (tmp_path / "f").read_bytes() == after


async def test_several_lines_are_found_whatever_ends_them(tmp_path):
    write(tmp_path, {"dos": "a\r\nb\r\nc\r\n", "mixed": "a\nb\r\nc\r\nd\n", "unix": "a\nb\n"})
    await edit(context(tmp_path), ("a\nb", "1\n2"), path="dos")
    await edit(context(tmp_path), ("b\nc", "1\n2"), path="mixed")
    await edit(context(tmp_path), ("a\r\nb", "1\r\n2"), path="unix")
    found = [(tmp_path / name).read_bytes() for name in ("dos", "mixed", "unix")]
    assert found == [b"1\r\n2\r\nc\r\n", b"a\n1\r\n2\r\nd\n", b"1\n2\n"]


async def test_a_piece_with_both_kinds_of_endings(tmp_path):
    write(tmp_path, {"f": b"a\r\nb\nc\r\nd\n"})
    assert "1 place" in (await edit(context(tmp_path), ("a\nb\nc", "A\nB"))).text
    assert (tmp_path / "f").read_bytes() == b"A\r\nB\r\nd\n"
    write(tmp_path, {"f": b"b\n.\r\nb\n.\r\nz"})
    with pytest.raises(ToolError, match="stands at 2 places"):
        await edit(context(tmp_path), ("b\n.\n", "c\n"))
    everywhere = [{"old": "b\n.\n", "new": "\\1\n", "all": True}]
    assert "2 places" in await text_of(TOOL, context(tmp_path), path="f", edits=everywhere)
    assert (tmp_path / "f").read_bytes() == b"\\1\n\\1\nz"


async def test_a_read_only_file_stays_what_it_is(tmp_path):
    """Replacing it needs no right to write it; whoever took that right away from everybody meant it."""
    write(tmp_path, {"f": "a"})
    (tmp_path / "f").chmod(0o444)
    arguments = {"path": "f", "edits": [{"old": "a", "new": "b"}]}
    for tool, given in ((EditFile(), arguments), (WriteFile(), {"path": "f", "content": "b"})):
        for client in (None, Editor({tmp_path / "f": "a"}, writes=True)):
            with pytest.raises(ToolError, match="is read-only"):
                await tool.request(given, context(tmp_path, client=client))
            with pytest.raises(ToolError, match="is read-only"):
                await tool.run(given, context(tmp_path, client=client))
    assert (tmp_path / "f").read_text() == "a"


@pytest.mark.parametrize(
    ("data", "read"), [(b"caf\xe9 a\n", "caf\ufffd a\n"), (b"\xff\xfea\0", "\ufffd\ufffda\0")]
)
async def test_an_editor_that_garbles_another_encoding_does_not_stand_in_the_way(tmp_path, data, read):
    write(tmp_path, {"f": data})
    editor = Editor({tmp_path / "f": read}, writes=True)
    await edit(context(tmp_path, client=editor), ("a", "b") if data[0] == 255 else (" a", " b"))
    assert (tmp_path / "f").read_bytes() == data.replace(b"a\n", b"b\n").replace(b"\xfea", b"\xfeb")
    assert editor.written == []


async def test_a_character_that_the_encoding_has_not(tmp_path):
    write(tmp_path, {"f": "ä b".encode("cp1252")})
    with pytest.raises(ToolError, match=r"is kept as cp1252, which has no \\u6f22"):
        await edit(context(tmp_path), ("b", "漢"))
    assert (tmp_path / "f").read_bytes() == "ä b".encode("cp1252")


async def test_mode_links_and_other_names_of_the_file(tmp_path):
    write(tmp_path, {"real/tool.sh": "old"})
    real = tmp_path / "real/tool.sh"
    real.chmod(0o755)
    (tmp_path / "link").symlink_to("real/tool.sh")
    os.link(real, tmp_path / "hard")
    await edit(context(tmp_path), ("old", "new"), path="link")
    assert (real.read_text(), stat.S_IMODE(real.stat().st_mode)) == ("new", 0o755)
    assert os.readlink(tmp_path / "link") == "real/tool.sh"
    # A hard link may lead to a file outside: that one is never written through it.
    assert (tmp_path / "hard").read_text() == "old"
    assert sorted(path.name for path in (tmp_path / "real").iterdir()) == ["tool.sh"]


# ---------------------------------------------------------------- stale files


async def test_a_file_that_changed_since_it_was_read_is_not_edited(tmp_path):
    write(tmp_path, {"f": "a\nb\n"})
    where = context(tmp_path)
    await text_of(ReadFile(), where, path="f")
    write(tmp_path, {"f": "a\nb\nc\n"})
    with pytest.raises(ToolError, match="f changed since it was read here; read it again first"):
        await edit(where, ("a", "A"))
    await text_of(ReadFile(), where, path="f", line=1, limit=1)
    await edit(where, ("a", "A"))
    await edit(where, ("A", "B"))
    assert (tmp_path / "f").read_text() == "B\nb\nc\n"


async def test_a_file_that_was_only_touched_is_what_it_was(tmp_path):
    write(tmp_path, {"f": "a"})
    where = context(tmp_path)
    await text_of(ReadFile(), where, path="f")
    os.utime(tmp_path / "f", (1, 1))
    await edit(where, ("a", "A"))


async def test_a_change_between_look_and_write_is_seen(tmp_path, monkeypatch):
    write(tmp_path, {"f": "a"})
    real_fsync = os.fsync

    def changed(descriptor):
        real_fsync(descriptor)
        (tmp_path / "f").write_text("by another")

    monkeypatch.setattr(os, "fsync", changed)
    with pytest.raises(ToolError, match="f changed meanwhile"):
        await edit(context(tmp_path), ("a", "A"))
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
    assert (tmp_path / "f").read_text() == "by another"


# ---------------------------------------------------------------- the editor


async def test_through_an_editor_that_writes(tmp_path):
    write(tmp_path, {"f": "saved a"})
    editor = Editor({tmp_path / "f": "unsaved a"}, writes=True)
    where = context(tmp_path, client=editor)
    outcome = await edit(where, (" a", " b"))
    assert editor.written == [(tmp_path / "f", "unsaved b")]
    assert (tmp_path / "f").read_text() == "saved a"
    assert outcome.diffs[0].old_text == "unsaved a"
    await edit(where, ("unsaved", "now"))
    assert editor.buffers[tmp_path / "f"] == "now b"


async def test_an_editor_that_refuses_is_not_gone_behind(tmp_path):
    write(tmp_path, {"f": "a"})
    with pytest.raises(ToolError, match="would not write the file: denied"):
        await edit(context(tmp_path, client=Editor(refuses=True)), ("a", "b"))
    assert (tmp_path / "f").read_text() == "a"


async def test_unsaved_changes_of_an_editor_that_cannot_write_are_not_lost(tmp_path):
    write(tmp_path, {"f": "x saved"})
    where = context(tmp_path, client=Editor({tmp_path / "f": "x unsaved"}))
    with pytest.raises(ToolError, match="has unsaved changes in the editor; save it there first"):
        await edit(where, ("x", "y"))
    assert (tmp_path / "f").read_text() == "x saved"


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
async def test_an_editor_with_line_feeds_for_a_file_with_others(tmp_path, mark):
    write(tmp_path, {"f": mark + b"a\r\nb\r\n"})
    editor = Editor({tmp_path / "f": "a\nb\n"}, writes=bool(mark))
    await edit(context(tmp_path, client=editor), ("a", "A"))
    # A file with a mark goes past the editor, which may not keep it.
    assert (tmp_path / "f").read_bytes() == mark + b"A\r\nb\r\n"
    assert editor.written == []


async def test_a_buffer_that_changed_is_stale_too(tmp_path):
    write(tmp_path, {"f": "a"})
    editor = Editor({tmp_path / "f": "a"}, writes=True)
    where = context(tmp_path, client=editor)
    await text_of(ReadFile(), where, path="f")
    editor.buffers[tmp_path / "f"] = "a, by hand"
    with pytest.raises(ToolError, match="changed since it was read here"):
        await edit(where, ("a", "b"))


@pytest.mark.parametrize("writes", [True, False])
async def test_edits_side_by_side_lose_nothing(tmp_path, writes):
    write(tmp_path, {"f": "one two three"})
    buffers = {tmp_path / "f": "one two three"} if writes else None
    editor = Editor(buffers, writes=writes)
    where = context(tmp_path, client=editor)
    async with trio.open_nursery() as nursery:
        for old, new in (("one", "1"), ("two", "2"), ("three", "3")):
            nursery.start_soon(edit, where, (old, new))
    assert (editor.buffers[tmp_path / "f"] if writes else (tmp_path / "f").read_text()) == "1 2 3"


# ---------------------------------------------------------------- before it runs


async def test_request_shows_the_diff_and_makes_no_change(tmp_path):
    write(tmp_path, {"f": "a\n"})
    request = await TOOL.request({"path": "f", "edits": edits(("a", "b"))}, context(tmp_path))
    assert (request.action, request.subject, request.paths) == ("write", "f", (tmp_path / "f",))
    assert request.diffs == (FileDiff(str(tmp_path / "f"), "a\n", "b\n"),)
    assert (request.outside, request.secret, request.risk) == (False, False, "")
    assert (tmp_path / "f").read_text() == "a\n"


async def test_nobody_is_asked_about_an_edit_that_cannot_be_made(tmp_path):
    write(tmp_path, {"f": "a\n"})
    with pytest.raises(ToolError, match="does not stand"):
        await TOOL.request({"path": "f", "edits": edits(("x", "b"))}, context(tmp_path))


async def test_request_outside_reads_nothing_there(tmp_path):
    request = await TOOL.request({"path": "/etc/passwd", "edits": edits(("root", "b"))}, context(tmp_path))
    assert (request.outside, request.diffs, request.subject) == (True, (), "/etc/passwd")


def test_view(tmp_path):
    view = TOOL.view({"path": "src/a.py"}, context(tmp_path))
    assert (view.title, view.locations[0].path) == ("Edit src/a.py", str(tmp_path / "src/a.py"))
    assert TOOL.view({"path": 3}, context(tmp_path)).title == "Edit a file"
    assert (TOOL.kind, WriteFile().kind) == ("edit", "edit")


async def test_a_long_file_is_shown_around_the_change(tmp_path):
    lines = [f"line {number}\n" for number in range(20_000)]
    write(tmp_path, {"f": "".join(lines)})
    (diff,) = (await edit(context(tmp_path), ("line 9000\n", "LINE\n"))).diffs
    assert diff.old_text is not None
    assert diff.old_text.startswith("line 8980\n")
    assert (diff.old_text.count("\n"), diff.new_text.count("\n")) == (41, 41)
    assert "LINE\n" in diff.new_text


async def test_cancelled_before_it_began_changes_nothing(tmp_path):
    write(tmp_path, {"f": "a"})
    with trio.CancelScope() as scope:
        scope.cancel()
        await edit(context(tmp_path), ("a", "b"))
    assert scope.cancelled_caught
    assert (tmp_path / "f").read_text() == "a"


async def test_a_large_file_is_not_edited(tmp_path):
    write(tmp_path, {"f": b"a" + b"\n" * (8 * 1024 * 1024)})
    with pytest.raises(ToolError, match="too large"):
        await edit(context(tmp_path), ("a", "b"))
