"""The answers "always" and "never" of a project: one small file each, below one folder for all projects.

A file an answer, so that two editors at once cannot lose each other's, and to forget one is to remove a file.
What cannot be read allows nothing. Blocks on the disk, for a moment.
"""

import hashlib
import json
import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from runtime.permission.patterns import RuleError
from runtime.permission.rules import Rule, parse_allow, parse_rule
from runtime.values.file_access import read_text, writing

Effect = Literal["allow", "deny"]

log = logging.getLogger("wholeturn.permission")


class Answer(NamedTuple):
    """What was answered once and for all. project: its folder, links resolved. file: where it is kept."""

    project: str
    effect: Effect
    rule: Rule
    file: Path


class Remembered:
    """The answers of one project. Reads the disk again only when something was added or removed there."""

    def __init__(self, folder: Path, project: str | os.PathLike[str]) -> None:
        self._project = os.path.realpath(project)
        self._folder = folder / _digest(self._project)
        self._seen = -1
        self._answers: tuple[Answer, ...] = ()

    def rules(self, effect: Effect) -> tuple[Rule, ...]:
        """The rules that were answered so."""
        return _answered(self._current(), effect)

    def both(self) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
        """What was allowed and what was denied, by one look at the disk."""
        current = self._current()
        return _answered(current, "allow"), _answered(current, "deny")

    def add(self, effect: Effect, rules: Iterable[Rule]) -> None:
        """Keep them, durably. Raises OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for rule in rules:
            name = f"{_digest(f'{effect} {rule}')}.json"
            content = {"project": self._project, "effect": effect, "rule": str(rule)}
            _write(self._folder / name, json.dumps(content))
        self._seen = -1

    def _current(self) -> tuple[Answer, ...]:
        try:
            changed = os.stat(self._folder).st_mtime_ns
        except OSError:
            return ()
        if changed != self._seen:
            self._seen = changed
            self._answers = tuple(one for one in _read_all(self._folder) if one.project == self._project)
        return self._answers


def _answered(answers: Iterable[Answer], effect: Effect) -> tuple[Rule, ...]:
    return tuple(answer.rule for answer in answers if answer.effect == effect)


def all_answers(folder: Path) -> list[Answer]:
    """Every answer of every project, by project and rule."""
    found = (answer for project in sorted(folder.glob("*")) for answer in _read_all(project))
    return sorted(found, key=lambda answer: (answer.project, answer.effect, str(answer.rule)))


def forget(answer: Answer) -> bool:
    """Ask again from now on; False if it was gone already. Raises OSError."""
    try:
        answer.file.unlink()
    except FileNotFoundError:
        return False
    return True


def _digest(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:32]


def _write(file: Path, text: str) -> None:
    new = file.with_suffix(f".{os.getpid()}.new")
    with writing(new, mode=0o600) as stream:
        os.chmod(new, 0o600)
        stream.write(text.encode())
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(new, file)


def _read_all(folder: Path) -> Iterator[Answer]:
    for file in sorted(folder.glob("*.json")):
        answer = _read(file)
        if answer is None:
            log.warning("%s is no answer that can be read; it is left aside", file)
        else:
            yield answer


def _read(file: Path) -> Answer | None:
    try:
        content = json.loads(read_text(file))
        effect, text = content["effect"], content["rule"]
        if effect == "allow":
            return Answer(str(content["project"]), "allow", parse_allow(text), file)
        return Answer(str(content["project"]), "deny", parse_rule(text), file) if effect == "deny" else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, RuleError):
        return None
