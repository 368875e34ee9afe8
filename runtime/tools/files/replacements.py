"""Exact replacements in a text, all of them or none, and the change as it is shown. Pure.

Says why one cannot be made. A model writes line feeds whatever the file has: the endings of the file decide.
"""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runtime.tools.sandbox.paths import shorten
from runtime.values.errors import ToolError
from runtime.values.events import FileDiff

_SHOWN_LINES = 12
_SHOWN_PLACES = 8
_LOOKED_AT = 5_000


@dataclass(frozen=True, slots=True)
class Edit:
    """`old` becomes `new`. everywhere: at each place; else it must stand at one place only."""

    old: str
    new: str
    everywhere: bool = False


def replace_all(text: str, edits: Sequence[Edit]) -> tuple[str, int]:
    """The text after all edits, in order, and how many places changed. Raises ToolError that names one."""
    uniform = "\r\n" in text and "\n" not in text.replace("\r\n", "")
    made = text.replace("\r\n", "\n") if uniform else text
    places = 0
    for number, edit in enumerate(edits, 1):
        where = f"edit {number} of {len(edits)}: " if len(edits) > 1 else ""
        made, count = _one(made, edit, where)
        places += count
    return (made.replace("\n", "\r\n") if uniform else made), places


def like(text: str, old: str) -> str:
    """`text` with the line endings of `old`, where those are all CRLF and the text has none."""
    uniform = "\r\n" in old and "\n" not in old.replace("\r\n", "")
    return text.replace("\n", "\r\n") if uniform and "\r\n" not in text else text


def _one(text: str, edit: Edit, where: str) -> tuple[str, int]:
    if not edit.old:
        raise ToolError(f"{where}old is empty; give the text to replace, or use write_file for a new file")
    if edit.old == edit.new:
        raise ToolError(f"{where}old and new are the same")
    for old, new in _spellings(edit):
        count = text.count(old)
        if count == 1 or (count and edit.everywhere):
            return text.replace(old, new), count
        if count:
            raise ToolError(where + _ambiguous(text, old, count))
    return _whatever_ends_lines(text, edit, where)


def _spellings(edit: Edit) -> list[tuple[str, str]]:
    """As given, then with the other line endings: a file may have both kinds."""
    plain = edit.old.replace("\r\n", "\n"), edit.new.replace("\r\n", "\n")
    dos = plain[0].replace("\n", "\r\n"), plain[1].replace("\n", "\r\n")
    return list(dict.fromkeys([(edit.old, edit.new), plain, dos]))


def _whatever_ends_lines(text: str, edit: Edit, where: str) -> tuple[str, int]:
    """The same for a piece of the file with both kinds of endings; its first is that of the new text."""
    old, new = (given.replace("\r\n", "\n") for given in (edit.old, edit.new))
    expression = re.compile("\r?\n".join(map(re.escape, old.split("\n"))))
    count = len(expression.findall(text)) if "\r\n" in text and "\n" in old else 0
    if not count:
        raise ToolError(where + _missing(text, edit))
    if count > 1 and not edit.everywhere:
        raise ToolError(f"{where}old stands at {count} places; give more of the text around it, or set all")

    def filled(found: re.Match[str]) -> str:
        return new.replace("\n", "\r\n") if found[0].partition("\n")[0].endswith("\r") else new

    return expression.sub(filled, text), count


def _ambiguous(text: str, old: str, count: int) -> str:
    lines, at = [], -1
    for _ in range(min(count, _SHOWN_PLACES)):
        at = text.index(old, at + 1 if at < 0 else at + len(old))
        lines.append(str(text.count("\n", 0, at) + 1))
    more = ", …" if count > _SHOWN_PLACES else ""
    return (
        f"old stands at {count} places (lines {', '.join(lines)}{more}); give more of the text around it, "
        "or set all"
    )


def _missing(text: str, edit: Edit) -> str:
    """What is nearest: the new text, the old one with other spaces, or a line like its first."""
    if edit.new and edit.new in text:
        return "old does not stand in the file, and new does: this edit seems to be made already"
    lines = text.splitlines()
    wanted = [line.strip() for line in edit.old.strip().splitlines()]
    stripped = [line.strip() for line in lines]
    for at in range(len(lines) - len(wanted) + 1):
        if wanted and stripped[at : at + len(wanted)] == wanted:
            shown = "\n".join(lines[at : at + min(len(wanted), _SHOWN_LINES)])
            return f"old differs from the file in its spaces; lines {at + 1}-{at + len(wanted)} are:\n{shown}"
    first = max(wanted, key=len, default="")
    near = difflib.get_close_matches(first, stripped[:_LOOKED_AT], n=1, cutoff=0.7) if first else []
    if near:
        at = stripped.index(near[0])
        return f"old does not stand in the file; line {at + 1} is near: {shorten(lines[at], 300)}"
    return "old does not stand in the file; read it again and give the text exactly as it is"


WHOLE = 64_000
"""Both texts together up to this many characters are shown whole."""
MOST = 400_000
"""A change that takes more characters than this is not shown."""
_AROUND = 20


def file_diff(path: Path, old: str | None, new: str) -> tuple[FileDiff, ...]:
    """The change as at most one diff; none when nothing changed or the change is too large to show."""
    if old == new:
        return ()
    if len(old or "") + len(new) > WHOLE and old:
        old, new = _changed_part(old, new)
    if len(old or "") + len(new) > MOST:
        return ()
    return (FileDiff(str(path), old, new),)


def line_counts(old: str, new: str) -> tuple[int, int]:
    """(lines that came, lines that went), outside the beginning and end that both texts share."""
    before, after = old.splitlines(), new.splitlines()
    head, tail = _shared(before, after)
    return len(after) - head - tail, len(before) - head - tail


def _changed_part(old: str, new: str) -> tuple[str, str]:
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    head, tail = _shared(before, after)
    start, end = max(0, head - _AROUND), max(0, tail - _AROUND)
    return "".join(before[start : len(before) - end]), "".join(after[start : len(after) - end])


def _shared(before: list[str], after: list[str]) -> tuple[int, int]:
    """How many lines both share at the beginning, and at the end behind those."""
    most = min(len(before), len(after))
    head = next((index for index in range(most) if before[index] != after[index]), most)
    most -= head
    tail = next((index for index in range(most) if before[-1 - index] != after[-1 - index]), most)
    return head, tail
