"""The indentation of new lines, from how that of the old ones differs from the file's. Pure.

Only where all that is known leads to one answer: a guess would break a file in which indentation counts.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

Pair = tuple[str, str]

_UNITS = ("\t", "    ", "  ", "        ", "   ", " ")


def lead(line: str) -> str:
    """The blank characters that a line begins with."""
    return line[: len(line) - len(line.lstrip())]


def usual_step(lines: Iterable[str]) -> str:
    """By what one line of a file is mostly deeper than the one before it; '' when none is."""
    steps: Counter[str] = Counter()
    before: str | None = None
    for line in lines:
        if line.strip():
            here = lead(line)
            if before is not None and len(here) > len(before) and here.startswith(before):
                steps[here[len(before) :]] += 1
            before = here
    return steps.most_common(1)[0][0] if steps else ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A way to read the difference. units: (of the edit, of the file), None when lines are only moved."""

    of: Callable[[str], str | None]
    units: Pair | None = None


class Indents:
    """pairs: of each old line that is not blank, (as the edit has it, as the file has it), from the top.

    steps: by what lines are mostly deeper, (in the edit, in the file): they decide between two readings.
    """

    def __init__(self, pairs: Sequence[Pair], steps: Pair = ("", "")) -> None:
        self._steps = steps
        self._pairs = tuple(dict.fromkeys(pairs))
        self._first: Pair | None = None
        if not pairs or _rules(self._pairs)[0]:
            return
        (first, *rest) = pairs
        if any(_rules(rest)) and first[0] not in dict(rest):
            # Models begin to copy at the first letter: then the first line alone has lost its indentation.
            self._first = first
            self._pairs = tuple(dict.fromkeys(rest))

    def of(self, given: str, *, first: bool = False) -> str | None:
        """What a line of the new text is indented by. first: it is its first. None: more than one reading."""
        if self._first is not None and given == self._first[0] and (first or not given):
            return self._first[1] if first else None
        known = {there for old, there in self._pairs if old == given}
        if known:
            return known.pop() if len(known) == 1 else None
        for rules in _rules(self._pairs):
            answers = {rule.of(given) for rule in rules} or {None}
            if len(answers) > 1:
                answers = {rule.of(given) for rule in rules if self._is_likely(rule)}
            if answers != {None}:
                return answers.pop() if len(answers) == 1 else None
        return None

    def _is_likely(self, rule: Rule) -> bool:
        if rule.units is None:
            return self._steps[0] == self._steps[1] != ""
        return rule.units == self._steps and self._steps[0] != self._steps[1]


def _rules(pairs: Sequence[Pair]) -> tuple[list[Rule], list[Rule]]:
    """The readings under which each old line becomes the file's: the plain ones, then the others."""
    if not pairs:
        return [], []
    if all(old == found for old, found in pairs):
        return [Rule(lambda given: given)], []
    plain, other = [rule for rule in (_deeper(pairs[0]), _less_deep(pairs[0])) if rule], list[Rule]()
    for units in product(_UNITS, _UNITS):
        levels = [_level(indent, unit) for indent, unit in zip(pairs[0], units, strict=True)]
        if units[0] != units[1] and levels[0] is not None and levels[1] is not None:
            shift = levels[1] - levels[0]
            (other if shift else plain).append(_other_unit(units, shift))
    plain, other = (
        [rule for rule in rules if all(rule.of(old) == found for old, found in pairs)]
        for rules in (plain, other)
    )
    return plain, other


def _deeper(pair: Pair) -> Rule | None:
    old, found = pair
    more = found[: len(found) - len(old)]
    return Rule(lambda given: more + given) if more and found.endswith(old) else None


def _less_deep(pair: Pair) -> Rule | None:
    old, found = pair
    more = old[: len(old) - len(found)]
    if not more or not old.endswith(found):
        return None
    return Rule(lambda given: given[len(more) :] if given.startswith(more) else None)


def _other_unit(units: Pair, shift: int) -> Rule:
    ours, theirs = units

    def of(given: str) -> str | None:
        level = _level(given, ours)
        return None if level is None or level + shift < 0 else theirs * (level + shift)

    return Rule(of, units)


def _level(indent: str, unit: str) -> int | None:
    count = len(indent) // len(unit)
    return count if indent == unit * count else None
