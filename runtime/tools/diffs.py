"""A change of a text as it is shown: both texts, or of long ones the part around the change. Pure."""

from pathlib import Path

from runtime.events import FileDiff

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
