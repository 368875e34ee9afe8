"""What a model is told of an edit that cannot be made: why, and the place that it may have meant. Pure."""

import difflib
import re
from collections import Counter
from collections.abc import Sequence

from runtime.tools.edits.line_numbers import numbered_lines
from runtime.tools.sandbox.paths import shorten
from runtime.values.errors import ToolError

_AROUND, _AROUND_AGAIN = 3, 40
_SHORT, _SHORT_AGAIN = 40, 200
"""Lines of a file that is shown whole."""
_CHARACTERS, _CHARACTERS_AGAIN = 4_000, 16_000
_PLACES, _CANDIDATES = 8, 4
_LOOKED_AT = 5_000
_ALIKE = 0.6
_LONG_ENOUGH = 12
_VOTE, _RARE = 1000, 4
"""What a line says of the place, shared among all where it stands; less than one in so many says nothing."""
_LEFT_OUT = re.compile(r"(?m)^\s*(?:(?://|#|--|/\*|<!--)\s*)?(?:\.\.\.|\u2026)[^\n]*$")


class Miss(ToolError):
    """An edit whose text is not there just once."""


def missing(lines: Sequence[str], old: str, new: str, *, again: bool = False) -> Miss:
    """`old` stands nowhere. again: the second time in a row, so more is shown."""
    place = _nearest(lines, old)
    if place is not None and _made_already(lines, new, place):
        where = f"lines {place[0] + 1}-{place[1]}"
        return Miss(
            f"old does not stand in the file, and new does ({where}): this edit seems to be made already"
        )
    why = "old does not stand in the file"
    if _LEFT_OUT.search(old):
        why += "; it must be all of the text, with nothing left out"
    most, around, size = (
        (_SHORT_AGAIN, _AROUND_AGAIN, _CHARACTERS_AGAIN) if again else (_SHORT, _AROUND, _CHARACTERS)
    )
    if len(lines) <= most and sum(map(len, lines)) <= size:
        shown = "the file is"
        rows = numbered_lines(lines, 0, len(lines))
    elif place is None:
        return Miss(f"{why}; read it again and give the text exactly as it is")
    else:
        start, end = place[0] - around, min(place[1], place[0] + most) + around
        rows = numbered_lines(lines, start, end)
        shown = "near it is"
    return Miss(f"{why}{_difference(lines, old, place)}; {shown}:\n{_bounded(rows, size)}")


def unclear(lines: Sequence[str], first: int, last: int, what: str) -> Miss:
    """A place was found, but there are two ways to write the new text there. first, last: from 1."""
    rows = numbered_lines(lines, first - 1 - _AROUND, last + _AROUND)
    return Miss(
        f"old differs from the file in its {what}, and it is not clear how new is to be written there; "
        f"give both as the file has them (lines {first}-{last}):\n{_bounded(rows, _CHARACTERS)}"
    )


def ambiguous(lines: Sequence[str], found: Sequence[int], old: str, level: str = "") -> Miss:
    """`old` stands at several places: their lines, from 1. level: in what they differ from it."""
    at = ", ".join(map(str, found[:_PLACES])) + (", …" if len(found) > _PLACES else "")
    why = f"old stands at {len(found)} places (lines {at})"
    if level:
        why = f"old differs from the file in its {level}, and {len(found)} places could be meant (lines {at})"
    ask = "give more of the text around it" + ("" if level else ", or set all")
    length = min(old.strip("\n").count("\n") + 1, _AROUND)
    blocks = [
        "\n".join(numbered_lines(lines, line - 1 - _AROUND, line - 1 + length + 1))
        for line in found[:_CANDIDATES]
    ]
    return Miss(f"{why}; {ask}:\n" + _bounded("\n…\n".join(blocks).split("\n"), _CHARACTERS))


def _nearest(lines: Sequence[str], old: str) -> tuple[int, int] | None:
    """The lines that are most like it: (index of the first, index behind the last)."""
    wanted = [line.strip() for line in old.strip("\n").split("\n")]
    there = [line.strip() for line in lines]
    places: dict[str, list[int]] = {}
    for index, line in enumerate(there):
        places.setdefault(line, []).append(index)
    votes: Counter[int] = Counter()
    for number, line in enumerate(wanted):
        found = places.get(line, ()) if any(char.isalnum() for char in line) else ()
        for at in found[:_PLACES]:
            # A line that stands everywhere says little.
            votes[at - number] += _VOTE // len(found)
    start = max(votes, key=lambda at: (votes[at], -at), default=0)
    if votes[start] > _VOTE // _RARE:
        return max(0, start), min(len(lines), max(0, start) + len(wanted))
    longest = max(wanted, key=len)
    close = difflib.get_close_matches(longest, there[:_LOOKED_AT], n=1, cutoff=_ALIKE) if longest else []
    if not close:
        return _holding(there, longest)
    start = max(0, there.index(close[0]) - wanted.index(longest))
    return start, min(len(lines), start + len(wanted))


def _holding(lines: Sequence[str], wanted: str) -> tuple[int, int] | None:
    """The line that shares most words with a text that is only a part of one."""
    words = set(re.findall(r"\w{3,}", wanted))
    scores = [len(words & set(re.findall(r"\w{3,}", line))) for line in lines[:_LOOKED_AT]]
    best = max(scores, default=0)
    return (scores.index(best), scores.index(best) + 1) if best * 2 > len(words) else None


def _made_already(lines: Sequence[str], new: str, place: tuple[int, int]) -> bool:
    """Whether the new text stands just where the old one would be. A short text stands everywhere."""
    wanted = [line.strip() for line in new.strip("\n").split("\n")]
    if len("".join(wanted)) < _LONG_ENOUGH:
        return False
    there = [line.strip() for line in lines]
    starts = [at for at in range(len(there) - len(wanted) + 1) if there[at : at + len(wanted)] == wanted]
    return len(starts) == 1 and starts[0] < place[1] and place[0] < starts[0] + len(wanted)


def _difference(lines: Sequence[str], old: str, place: tuple[int, int] | None) -> str:
    """The first line in which they differ, side by side."""
    if place is None:
        return ""
    for number, line in enumerate(old.strip("\n").split("\n")):
        at = place[0] + number
        if at < place[1] and line.strip() != lines[at].strip():
            there, here = (shorten(text.strip(), 120) for text in (lines[at], line))
            return f": line {at + 1} is {there!r} where old has {here!r}"
    return ""


def _bounded(rows: Sequence[str], most: int) -> str:
    kept, size = [], 0
    for row in rows:
        size += len(row) + 1
        if size > most:
            kept.append("…")
            break
        kept.append(row)
    return "\n".join(kept)
