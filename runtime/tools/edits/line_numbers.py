"""Line numbers before the lines of a text, and off again: `12|the line`. Pure."""

import re
from collections.abc import Sequence

_NUMBERED = re.compile(r"[ \t]*L?(\d{1,7})(\t|\u2192| ?\||: ?| ?\u2502)")
"""What agents put before a line that they show: a tab, an arrow, a bar, a colon behind the number."""


def numbered(text: str, first: int = 1) -> str:
    """Each line with its number. first: of the first line. A last line without line feed stays without."""
    if not text:
        return ""
    *lines, last = text.split("\n")
    shown = [f"{number}|{line}" for number, line in enumerate(lines, first)]
    return "\n".join([*shown, f"{first + len(lines)}|{last}" if last else ""])


def numbered_lines(lines: Sequence[str], start: int, end: int) -> list[str]:
    """The lines from index `start` up to `end`, as far as there are such, each with its number.

    What stands behind the last line feed is none when it is nothing.
    """
    start, end = max(0, start), min(end, len(lines) - (not lines[-1]))
    return [f"{number}|{line}" for number, line in enumerate(lines[start:end], start + 1)]


def without_numbers(text: str) -> list[str] | None:
    """The text without the numbers before its lines, in each way to read it; None unless every line has one.

    Two ways when a space stands behind every mark: it may be part of the mark or of the line.
    """
    body, end = (text[:-1], "\n") if text.endswith("\n") else (text, "")
    lines = body.split("\n")
    found = [_NUMBERED.match(line) for line in lines]
    marks = {match[2] for match in found if match is not None}
    if None in found or len(marks) != 1:
        return None
    rests = [line[match.end() :] for line, match in zip(lines, found, strict=True) if match is not None]
    ways = ["\n".join(rests) + end]
    if marks.isdisjoint((":", ": ")) and any(rests) and all(not rest or rest[0] == " " for rest in rests):
        ways.append("\n".join(rest[1:] for rest in rests) + end)
    return ways


def rising(text: str) -> bool:
    """Whether the numbers before the lines go up by one from line to line."""
    found = [_NUMBERED.match(line) for line in text.removesuffix("\n").split("\n")]
    numbers = [int(match[1]) for match in found if match is not None]
    return len(numbers) == len(found) and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
