"""Rules about commands: what a pattern of words covers for sure, and what it may mean. Pure.

`covers` decides what runs without asking, so whatever is not certain is False there. `may_mean` decides what
is refused, so there it is True.
"""

import re
import shlex
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from runtime.permission.command_line import Command, Line, read_line
from runtime.permission.patterns import RuleError
from runtime.permission.programs import (
    may_vary,
    minds_its_folder,
    program_name,
    runs_others,
    safe_scope,
    takes_a_script,
    takes_names,
)

MOST_SUGGESTED = 3
"""Prefixes that one "always" may name; more than that nobody reads."""

_IN_A_WORD = re.compile(r"[/.=:@,_-]\*$")
_QUOTES = str.maketrans("", "", "\"'\\")
# An = may stand between words (`A=b git push`) or within the value of an option (`git -c a=b push`).
_BETWEEN = (re.compile(r"[\s;&|(){}<>`$=,]+"), re.compile(r"[\s;&|(){}<>`$,]+"))


class CommandPattern(NamedTuple):
    """words: what a command begins with. more: others may follow; without words: every command."""

    words: tuple[str, ...]
    more: bool


@lru_cache(maxsize=512)
def parse_command(text: str) -> CommandPattern:
    """`git status*` or `make all`. Raises RuleError."""
    more = text.endswith("*")
    body = text.removesuffix("*").strip()
    if not body:
        return CommandPattern((), more=True)
    if _IN_A_WORD.search(text):
        raise RuleError("has its * within a word; it stands for further words: git status*")
    line = read_line(body)
    if line.unclear:
        raise RuleError(f"is no plain command: {line.unclear}")
    if len(line.commands) != 1 or line.writes:
        raise RuleError("must be one command without a redirection")
    if any(word.open for word in line.commands[0]):
        raise RuleError("may have a * only at its end")
    return CommandPattern(texts(line.commands[0]), more)


def promises_nothing(pattern: CommandPattern) -> bool:
    """Whether the pattern could never cover a command."""
    fixed = len(pattern.words)
    further = ("something",) if pattern.more else ()
    return bool(fixed) and not may_vary((*pattern.words, *further), fixed)


def texts(command: Command) -> tuple[str, ...]:
    """The words without what is known of them."""
    return tuple(word.text for word in command)


def covers(pattern: CommandPattern, command: Command) -> bool:
    """Whether all that the command can run is what the pattern names."""
    fixed = len(pattern.words)
    if not fixed:
        return True
    words = texts(command)
    if words[:fixed] != pattern.words or any(word.open for word in command[:fixed]):
        return False
    if len(words) > fixed and not pattern.more:
        return False
    if any(word.open for word in command) and takes_names(words):
        return False
    return may_vary(words, fixed)


def may_mean(pattern: CommandPattern, line: Line, text: str) -> bool:
    """Whether one of the commands of the line could be one that the pattern names."""
    if not pattern.words:
        return True
    if line.unclear:
        return _in_text(pattern, text)
    return any(_means(pattern, texts(command)) for command in line.commands)


def is_hidden(line: Line) -> bool:
    """Whether the line may run what its words do not show."""
    return bool(line.unclear) or any(runs_others(texts(command)) for command in line.commands)


def runs_a_file(command: Command) -> bool:
    """Whether what it runs depends on the folder that it is started in."""
    program = command[0].text
    relative = "/" in program and not program.startswith("/")
    return relative or takes_a_script(program) or minds_its_folder(program)


def suggest(command: Command) -> str | None:
    """The pattern that an "always" may stand for after this command; None when none is safe."""
    scope = safe_scope(texts(command))
    if scope is None:
        return None
    pattern = _written(texts(command)[: scope.size], more=scope.more)
    return pattern if pattern is not None and covers(parse_command(pattern), command) else None


def exactly(command: Command) -> str | None:
    """The pattern for this command and no other; None when it cannot be written."""
    return _written(texts(command), more=False)


def _written(words: Sequence[str], *, more: bool) -> str | None:
    text = shlex.join(words) + ("*" if more else "")
    try:
        same = text.isprintable() and parse_command(text) == CommandPattern(tuple(words), more)
    except RuleError:
        return None
    return text if same else None


def _means(pattern: CommandPattern, words: tuple[str, ...]) -> bool:
    if runs_others(words) and _in_text(pattern, " ".join(words)):
        return True
    if not _same_program(pattern.words[0], words[0]):
        return False
    return _leads(pattern.words[1:], words[1:]) if pattern.more else words[1:] == pattern.words[1:]


def _in_text(pattern: CommandPattern, text: str) -> bool:
    plain = text.translate(_QUOTES)
    return any(_in_words(pattern, [word for word in ends.split(plain) if word]) for ends in _BETWEEN)


def _in_words(pattern: CommandPattern, words: Sequence[str]) -> bool:
    return any(
        _same_program(pattern.words[0], word) and _leads(pattern.words[1:], words[place + 1 :])
        for place, word in enumerate(words)
    )


def _same_program(wanted: str, word: str) -> bool:
    return program_name(wanted) == program_name(word)


def _leads(wanted: Sequence[str], words: Sequence[str]) -> bool:
    """Whether the wanted words come next, with nothing but options and their values in between."""
    places = {0}
    for want in wanted:
        places = {
            place + 1
            for start in places
            for place in _after_options(words, start)
            if place < len(words) and words[place] == want
        }
    return bool(places)


def _after_options(words: Sequence[str], start: int) -> set[int]:
    found, open_places = {start}, [start]
    while open_places:
        place = open_places.pop()
        if place < len(words) and words[place].startswith("-"):
            fresh = {place + 1, place + 2} - found
            found |= fresh
            open_places.extend(fresh)
    return found
