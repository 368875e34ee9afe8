"""File globs and ignore files, for the search that runs without ripgrep. Pure, standard library only.

Holds the common part of the gitignore language: `*`, `?`, `[...]`, `**`, `{a,b}`, a leading `!`, a
trailing `/`, and a `/` elsewhere that ties the pattern to its folder. Does not hold: escapes inside
brackets, nested braces, the user's global ignore file, `.git/info/exclude`.
"""

import itertools
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

_TOKEN = re.compile(r"\*+|\?|\[!?\]?[^\]]*\]|\\.|.", re.DOTALL)
_MOST_CHOICES = 100


@dataclass(frozen=True, slots=True)
class Rule:
    """One pattern. expression matches a path relative to the rule's folder, `/` between its names."""

    expression: re.Pattern[str]
    negated: bool
    folders_only: bool


def rule(pattern: str) -> Rule | None:
    """The rule of one line; None for a blank line, a comment, or a pattern that cannot be read."""
    text = pattern.rstrip("\r\n").rstrip(" ")
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text.removeprefix("!")
    folders_only = text.endswith("/")
    text = text.rstrip("/")
    tied = "/" in text
    try:
        expression = re.compile(("" if tied else "(?:.*/)?") + translate(text.lstrip("/")), re.DOTALL)
    except re.error:
        return None
    return Rule(expression, negated, folders_only)


def translate(glob: str) -> str:
    """The regular expression of a glob over a whole path, without the start. Takes linear time to match."""
    made = [_pattern(one.split("/")) for one in _expanded(glob)]
    return (made[0] if len(made) == 1 else f"(?:{'|'.join(made)})") + r"\Z"


def rules(lines: Iterable[str]) -> tuple[Rule, ...]:
    """The rules of an ignore file, in order."""
    return tuple(made for line in lines if (made := rule(line)) is not None)


def verdict(found: Iterable[Rule], path: str, *, is_folder: bool) -> bool | None:
    """Whether the last rule that matches takes the path in (True), negates it (False), or none does."""
    answer: bool | None = None
    for one in found:
        if one.folders_only and not is_folder:
            continue
        if one.expression.match(path):
            answer = not one.negated
    return answer


def _expanded(glob: str) -> list[str]:
    """The glob once for each choice of its braces; as it stands when those are too many."""
    pieces = [
        piece[1:-1].split(",") if piece[:1] == "{" and len(piece) > 1 else [piece]
        for piece in re.findall(r"\{[^{}]*\}|[^{]+|\{", glob)
    ]
    if math.prod(map(len, pieces)) > _MOST_CHOICES:
        return [glob]
    return ["".join(choice) for choice in itertools.product(*pieces)]


def _pattern(names: list[str]) -> str:
    """The runs of names between `**`. One between two of them is found where it first stands, for good:

    what may follow, any folders, begins there at the latest, so nothing is lost and nothing tried twice.
    """
    runs: list[list[str]] = [[]]
    for name in names:
        if name != "**":
            runs[-1].append(name)
        elif runs[-1] or len(runs) == 1:
            runs.append([])
    first, *others = ["/".join(map(_name, run)) for run in runs]
    if not others:
        return first
    *middle, last = others
    made = [f"{first}/" if runs[0] else "", *(f"(?>(?:[^/]*/)*?{run}/)" for run in middle)]
    return "".join(made) + (f"(?:.*/)?{last}" if runs[-1] else ".*")


def _name(glob: str) -> str:
    """One name. What stands between two stars is found where it first stands, as above."""
    runs = [""]
    for token in _TOKEN.findall(glob):
        if token.startswith("*"):
            runs.append("")
        else:
            runs[-1] += _token(token)
    first, *others = runs
    if not others:
        return first
    *middle, last = others
    return first + "".join(f"(?>[^/]*?{run})" for run in middle) + f"[^/]*{last}"


def _token(token: str) -> str:
    if token == "?":
        return "[^/]"
    if token.startswith("[") and len(token) > 2:
        # Python warns of sets that it may once nest: brackets and doubled signs are taken as they stand.
        body = re.sub(r"[\\\[&~|]", r"\\\g<0>", token[1:-1]).replace("--", r"\-\-")
        return f"[^/{body[1:]}]" if body.startswith("!") else f"[{body}]"
    return re.escape(token[-1])
