"""File globs and ignore files, for the search that runs without ripgrep. Pure, standard library only.

Holds the common part of the gitignore language: `*`, `?`, `[...]`, `**`, `{a,b}`, a leading `!`, a
trailing `/`, and a `/` elsewhere that ties the pattern to its folder. Does not hold: escapes inside
brackets, nested braces, the user's global ignore file, `.git/info/exclude`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_TOKEN = re.compile(r"\*\*/|/\*\*$|\*+|\?|\[!?\]?[^\]]*\]|\\.|.", re.DOTALL)
_FIXED = {"**/": "(?:.*/)?", "/**": "/.*", "?": "[^/]"}


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
    text = text[1:] if negated else text.removeprefix("\\")
    folders_only = text.endswith("/")
    text = text.rstrip("/")
    tied = "/" in text
    try:
        expression = re.compile(("" if tied else "(?:.*/)?") + translate(text.lstrip("/")), re.DOTALL)
    except re.error:
        return None
    return Rule(expression, negated, folders_only)


def translate(glob: str) -> str:
    """The regular expression of a glob over a whole path, without the start."""
    made = [_braces(piece) if piece[:1] == "{" else _plain(piece) for piece in _alternations(glob)]
    return "".join(made) + r"\Z"


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


def _alternations(glob: str) -> list[str]:
    return re.findall(r"\{[^{}]*\}|[^{]+|\{", glob)


def _braces(piece: str) -> str:
    if piece == "{":
        return re.escape(piece)
    return "(?:" + "|".join(_plain(choice) for choice in piece[1:-1].split(",")) + ")"


def _plain(glob: str) -> str:
    return "".join(_token(token) for token in _TOKEN.findall(glob))


def _token(token: str) -> str:
    if token in _FIXED:
        return _FIXED[token]
    if token.startswith("*"):
        return "[^/]*"
    if token.startswith("[") and len(token) > 2:
        # Python warns of sets that it may once nest: brackets and doubled signs are taken as they stand.
        body = re.sub(r"[\\\[&~|]", r"\\\g<0>", token[1:-1]).replace("--", r"\-\-")
        return f"[^/{body[1:]}]" if body.startswith("!") else f"[{body}]"
    return re.escape(token[-1])
