"""Ignore files of a folder tree and file globs, for the search without ripgrep and for what is secret.

Holds the common part of the gitignore language: `*`, `?`, `[...]`, `**`, `{a,b}`, a leading `!`, a trailing
`/`, and a `/` elsewhere that ties the pattern to its folder. Does not hold: escapes inside brackets, nested
braces, the user's global ignore file, `.git/info/exclude`, ignore files above the root. Paths are relative to
a root, `/` between their names. Standard library only: the search process imports it.
"""

import itertools
import math
import os
import re
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass

from runtime.values.file_access import NO_WAITING, reading

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


IGNORE_FILES = (".gitignore", ".ignore")
_READ = getattr(os, "O_NOFOLLOW", 0) | NO_WAITING
_LIMIT = 1024 * 1024
_SETTLED_NS = 2_000_000_000
_MOST_FOLDERS = 4096

Stamp = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Layer:
    """The rules of one ignore file. prefix: of paths in its folder, '' or 'a/b/'."""

    prefix: str
    rules: tuple[Rule, ...]


def layers_of(root: str, prefix: str, names: tuple[str, ...] = IGNORE_FILES) -> list[Layer]:
    """The ignore files of one folder."""
    made = []
    for name in names:
        lines = lines_of(os.path.join(root, prefix + name))
        if lines:
            made.append(Layer(prefix, rules(lines)))
    return made


def layers_above(root: str, parts: tuple[str, ...], names: tuple[str, ...] = IGNORE_FILES) -> list[Layer]:
    """The ignore files from the root down to the folder above the path with these names."""
    made: list[Layer] = []
    for depth in range(len(parts)):
        made += layers_of(root, "".join(f"{part}/" for part in parts[:depth]), names)
    return made


def ignored(layers: list[Layer], path: str, *, is_folder: bool) -> bool:
    """Whether the path is left out. The nearest ignore file that says anything decides."""
    for layer in reversed(layers):
        answer = verdict(layer.rules, path[len(layer.prefix) :], is_folder=is_folder)
        if answer is not None:
            return answer
    return False


class Absent:
    """Folders of a local disk in which none of some files is, so that none need be opened to know it again.

    A folder's time changes with what is in it. It is trusted when the folder has been left alone for a while:
    two changes within the clock's step look like one.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._known: dict[str, Stamp] = {}

    def all_in(self, folder: str) -> bool:
        """Whether none of the files is in there."""
        try:
            status = os.stat(folder)
            stamp = status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns
            if self._known.get(folder) == stamp:
                return True
            if any(os.path.lexists(os.path.join(folder, name)) for name in self._names):
                return False
        except (OSError, ValueError):
            return False
        if time.time_ns() - max(stamp[2:]) > _SETTLED_NS:
            if len(self._known) >= _MOST_FOLDERS:
                self._known.clear()
            self._known[folder] = stamp
        return True


def lines_of(path: str) -> list[str]:
    """The lines of an ignore file; none when it is missing, special, a link, too large or unreadable."""
    data = read_file(path, _LIMIT)
    return data.decode("utf-8", "replace").split("\n") if data else []


def read_file(path: str, limit: int, *, complain: bool = False) -> bytes:
    """A file's bytes; none for one that is larger, special or a link. complain: raise OSError, else none."""
    try:
        with reading(path, _READ) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
                return b""
            return file.read(limit)
    except OSError:
        if complain:
            raise
        return b""
