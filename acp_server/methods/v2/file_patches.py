"""A change of a file as ACP v2 shows it: what happened to which path, and a patch as git writes it. Pure.

The patch has one hunk, from the first line that differs to the last: found in linear time for any texts.
Of a text that was shown only around its change the line numbers are those within the part.
"""

from collections.abc import Sequence

CONTEXT = 3
"""Lines around the change."""
_ESCAPES = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}
_NO_END = "\\ No newline at end of file\n"


def diff_content(path: str, old: str | None, new: str) -> dict[str, object]:
    """The change as content of a tool call. old None: the file is new."""
    operation = "add" if old is None else "modify"
    body: dict[str, object] = {
        "type": "diff",
        "changes": [{"operation": operation, "path": path, "fileType": "text"}],
    }
    if old != new:
        body["patch"] = {"format": "git_patch", "text": git_patch(path, old, new)}
    return body


def git_patch(path: str, old: str | None, new: str) -> str:
    """The texts differ, or the file is new."""
    name = quoted(path)
    head = f"diff --git {name} {name}\n"
    if old is None:
        head += "new file mode 100644\n"
    hunk = _hunk(_lines(old or ""), _lines(new))
    if not hunk:
        return head
    # Git ends a name with blanks in it by a tab, so that it cannot be taken for a name and a date.
    end = "\t" if " " in path and name == path else ""
    before = "/dev/null" if old is None else name + end
    return f"{head}--- {before}\n+++ {name}{end}\n{hunk}"


def quoted(path: str) -> str:
    """The path as git writes it: in quotes where it holds anything but printable ASCII."""
    pieces = [_escaped(byte) for byte in path.encode("utf-8", "surrogatepass")]
    text = "".join(pieces)
    return text if len(text) == len(path) and text == path else f'"{text}"'


def _escaped(byte: int) -> str:
    if byte in _ESCAPES:
        return f"\\{_ESCAPES[byte]}"
    return chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"


def _lines(text: str) -> list[str]:
    """Cut at line feeds alone; what follows the last one is a line without an end."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()
    return [*lines, f"{last}{_NO_END}"] if last != "\n" else lines


def _hunk(old: Sequence[str], new: Sequence[str]) -> str:
    most = min(len(old), len(new))
    head = next((at for at in range(most) if old[at] != new[at]), most)
    most -= head
    tail = next((at for at in range(most) if old[-1 - at] != new[-1 - at]), most)
    if head == len(old) == len(new):
        return ""
    start, end = max(0, head - CONTEXT), max(0, tail - CONTEXT)
    lines = [
        *(f" {line}" for line in old[start:head]),
        *(f"-{line}" for line in old[head : len(old) - tail]),
        *(f"+{line}" for line in new[head : len(new) - tail]),
        *(f" {line}" for line in old[len(old) - tail : len(old) - end]),
    ]
    ranges = (_range(start, len(lines_of) - end - start) for lines_of in (old, new))
    return "@@ -{} +{} @@\n".format(*ranges) + "".join(lines)


def _range(start: int, count: int) -> str:
    """As git counts: from one; an empty range stands behind the line before it, one line has no count."""
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"
