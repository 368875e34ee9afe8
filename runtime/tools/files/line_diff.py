"""A change of a text as it is shown: both texts, or of long ones the part around the change. Pure."""

from itertools import pairwise
from pathlib import Path

from runtime.tools.edits.line_numbers import numbered_lines
from runtime.values.events import FileDiff

WHOLE = 64_000
"""Both texts together up to this many characters are shown whole."""
MOST = 400_000
"""A change that takes more characters than this is not shown."""
_AROUND = 20
_NEAR = 3
_MOST_CHANGES = 500
_SHOWN, _LONGEST = 60, 200
"""Changed lines that a model is shown after its edit, and characters of one."""


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
    """(lines that came, lines that went)."""
    changes = _changes(_lines(old), _lines(new))
    return sum(d - c for _, _, c, d in changes), sum(b - a for a, b, _, _ in changes)


def changed_lines(old: str, new: str) -> str:
    """The changed lines of the new text with three around them, numbered; `…` for what lies between."""
    after = _lines(new)
    blocks: list[tuple[int, int]] = []
    for _, _, start, end in _changes(_lines(old), after):
        first, last = max(0, start - _NEAR), min(len(after), end + _NEAR)
        if blocks and first <= blocks[-1][1]:
            blocks[-1] = (blocks[-1][0], last)
        else:
            blocks.append((first, last))
    shown: list[str] = []
    for first, last in blocks:
        shown += ["…"] * bool(shown) + numbered_lines([*after, ""], first, last)
    kept = [row if len(row) <= _LONGEST else f"{row[:_LONGEST]}…" for row in shown[:_SHOWN]]
    return "\n".join([*kept, *["…"] * (len(shown) > _SHOWN)])


def _changes(before: list[str], after: list[str]) -> list[tuple[int, int, int, int]]:
    """Each run of lines that differs: (from, to) in the old text and in the new one."""
    head, tail = _shared(before, after)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    runs = list[list[int]]()
    for a, c in _matches(old, new):
        if not runs or (a, c) != (runs[-1][1], runs[-1][3]):
            runs.append([a, a, c, c])
        runs[-1][1], runs[-1][3] = a + 1, c + 1
    # What lies between two runs of equal lines is a change.
    edges = [[0, 0, 0, 0], *runs, [len(old), 0, len(new), 0]]
    found = [(one[1], other[0], one[3], other[2]) for one, other in pairwise(edges)]
    return [(a + head, b + head, c + head, d + head) for a, b, c, d in found if a < b or c < d]


def _matches(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """The lines that stay, (index in the old text, in the new one), by Myers' O(ND) difference.

    Where more than _MOST_CHANGES lines differ none stays: nobody counts those.
    """
    numbers: dict[str, int] = {}
    a, b = ([numbers.setdefault(line, len(numbers)) for line in lines] for lines in (old, new))
    reached, trail = {1: 0}, list[dict[int, int]]()
    for changes in range(min(len(a) + len(b), _MOST_CHANGES) + 1):
        trail.append(dict(reached))
        for k in range(-changes, changes + 1, 2):
            down = k == -changes or (k != changes and reached[k - 1] < reached[k + 1])
            x = reached[k + 1] if down else reached[k - 1] + 1
            while x < len(a) and 0 <= x - k < len(b) and a[x] == b[x - k]:
                x += 1
            reached[k] = x
            if x >= len(a) and x - k >= len(b):
                return _back(trail, len(a), len(b))
    return []


def _back(trail: list[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    """Along the way by which the ends were reached."""
    found: list[tuple[int, int]] = []
    for changes in range(len(trail) - 1, -1, -1):
        reached, k = trail[changes], x - y
        down = k == -changes or (k != changes and reached.get(k - 1, -1) < reached.get(k + 1, -1))
        before = k + 1 if down else k - 1
        start = reached[before] if changes else 0
        stop = start if down or not changes else start + 1
        while x > stop and y > stop - k:
            x, y = x - 1, y - 1
            found.append((x, y))
        x, y = start, start - before if changes else 0
    return found[::-1]


def _lines(text: str) -> list[str]:
    """As every tool counts them: a line ends at `\\n`, and what stands behind the last one is none."""
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []


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
