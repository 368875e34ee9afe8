"""Changes of files as git would write them: applied, they give the new text."""

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_server.methods.v2.file_patches import diff_content, git_patch, quoted
from tests.support.acp_schema import check_type

LINES = st.lists(st.sampled_from(["", "a", "b", "c", "\r", " x", "é", "\u2028", "-"]), max_size=12)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))


def applied(patch: str, old: str) -> str:
    """The new text, by the hunk's own figures; every context and removed line must stand in the old one."""
    _, at, hunk = patch.partition("\n@@ -")
    if not at:
        return old
    head, _, body = hunk.partition(" @@\n")
    begins, counts = zip(*(_range(part) for part in head.split(" +")), strict=True)
    before, after = [], []
    marked = body.replace("\n\\ No newline at end of file\n", "\0").replace("\n", "\n\1").replace("\0", "\1")
    for line in filter(None, marked.split("\1")):
        before += [line[1:]] if line[0] in " -" else []
        after += [line[1:]] if line[0] in " +" else []
    assert (len(before), len(after)) == counts
    lines = [line for line in old.replace("\n", "\n\1").split("\1") if line]
    start = begins[0] - 1 if counts[0] else begins[0]
    assert lines[start : start + len(before)] == before
    return "".join([*lines[:start], *after, *lines[start + len(before) :]])


def _range(text: str) -> tuple[int, int]:
    first, _, count = text.partition(",")
    return int(first), int(count or 1)


@given(old=TEXTS, new=TEXTS)
def test_a_patch_makes_the_new_text_of_the_old(old: str, new: str):
    assert applied(git_patch("/a", old, new), old) == new
    assert applied(git_patch("/a", None, new), "") == new


def test_it_reads_as_gits_own():
    old = "".join(f"{number}\n" for number in range(1, 11))
    assert git_patch("/w/a.txt", old, old.replace("5\n", "five\n")) == (
        "diff --git /w/a.txt /w/a.txt\n--- /w/a.txt\n+++ /w/a.txt\n"
        "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
    )
    assert git_patch("/w/a b.txt", None, "x") == (
        "diff --git /w/a b.txt /w/a b.txt\nnew file mode 100644\n--- /dev/null\n+++ /w/a b.txt\t\n"
        "@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n"
    )
    assert git_patch("/e", None, "") == "diff --git /e /e\nnew file mode 100644\n"
    assert git_patch("/e", "x\n", "") == "diff --git /e /e\n--- /e\n+++ /e\n@@ -1 +0,0 @@\n-x\n"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/a/b-1_c.txt", "/a/b-1_c.txt"),
        ("/a b", "/a b"),
        ("/é", '"/\\303\\251"'),
        ('/"q"\t\n', '"/\\"q\\"\\t\\n"'),
        ("C:\\w\\a", '"C:\\\\w\\\\a"'),
        ("/\x01\x7f", '"/\\001\\177"'),
    ],
)
def test_a_name_that_is_not_plain_stands_in_quotes(path: str, name: str):
    assert quoted(path) == name


@pytest.mark.parametrize(("old", "new"), [(None, ""), (None, "x\n"), ("x\n", "y\n"), ("x", "x")])
def test_it_is_what_the_schema_calls_a_diff(old: str | None, new: str):
    content = diff_content("/w/a", old, new)
    check_type("ToolCallContent", content, "schema-v2")
    assert ("patch" in content) == (old != new)
    (change,) = cast("list[dict[str, str]]", content["changes"])
    assert change["operation"] == ("add" if old is None else "modify")
