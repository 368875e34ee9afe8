"""What a prefix of a command's words may promise, and which an "always" may be offered for. Pure.

`known_programs` has the tables; here is how they are read: in doubt a program may run others.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from runtime.permission.known_programs import (
    ASSIGNING,
    BUILTINS,
    BY_FOLDER,
    FETCHING,
    INTERPRETERS,
    NESTED,
    OPTIONS,
    PASSING,
    PLAIN,
    READING_ARGUMENTS,
    RUNNERS,
    SCRIPTS,
    SUBCOMMANDS,
    TARGETS,
)

_SIGNS = dict.fromkeys(ASSIGNING, "=") | dict.fromkeys(READING_ARGUMENTS, "@")
"""What makes any word of a program's an option."""
_VERSION = re.compile(r"(?<=[a-z])[-.]?[0-9]+(\.[0-9]+)*$")


def program_name(word: str) -> str:
    """A program as the tables have it: without folder, ending and version, in small letters."""
    name = word.replace("\\", "/").rpartition("/")[2].casefold().removesuffix(".exe")
    return name if name in RUNNERS or name in OPTIONS else _VERSION.sub("", name)


def names_an_option(words: Sequence[str], start: int) -> bool:
    """Whether one of the words from `start` on could be one of the program's OPTIONS.

    Abbreviations and clusters of short options count too; rather one too many.
    """
    program = program_name(words[0])
    known = OPTIONS.get(program, frozenset()).union(
        *(OPTIONS.get(f"{program} {word}", ()) for word in words[1:])
    )
    rest = words[start:]
    sign = _SIGNS.get(program, "")
    return any(_is_option(word, known) or (bool(sign) and sign in word) for word in rest)


def _is_option(word: str, known: frozenset[str]) -> bool:
    if not word.startswith("-"):
        return False
    name = word.lstrip("-").partition("=")[0]
    if word.startswith("--"):
        return bool(name) and any(option.startswith(name) for option in known if len(option) > 1)
    letters = {option for option in known if len(option) == 1}
    return name in known or any(letter in letters for letter in name)


def may_vary(words: Sequence[str], fixed: int) -> bool:
    """Whether a promise about the first `fixed` words (1 or more) can hold for these words in full.

    False: what follows could make the program run or write something else.
    """
    program = program_name(words[0])
    if program in BUILTINS:
        return False
    if fixed == len(words):
        return True
    if program in RUNNERS:
        return False
    if program in INTERPRETERS:
        return _script_is_fixed(program, words, fixed)
    return _nested_is_fixed(program, words, fixed) and not names_an_option(words, fixed)


def _nested_is_fixed(program: str, words: Sequence[str], fixed: int) -> bool:
    inner = NESTED.get(program, frozenset())
    if fixed == 1:
        return not inner.intersection(words)
    if words[1] not in inner:
        return True
    passes_on = (program, words[1]) in PASSING and fixed > 2 and not words[2].startswith("-")
    return passes_on and may_vary(words[2:], fixed - 2)


def _script_is_fixed(program: str, words: Sequence[str], fixed: int) -> bool:
    if program in ("python", "pypy") and fixed > 2 and words[1] == "-m" and not words[2].startswith("-"):
        return may_vary(words[2:], fixed - 2)
    return fixed > 1 and not words[1].startswith("-")


def runs_others(words: Sequence[str]) -> bool:
    """Whether the command may run something that its first word does not name."""
    program = program_name(words[0])
    if program in RUNNERS or program in INTERPRETERS or program in BUILTINS:
        return True
    return bool(NESTED.get(program, frozenset()).intersection(words)) or names_an_option(words, 1)


def minds_its_folder(program: str) -> bool:
    """Whether the program runs what the folder says that it is started in."""
    return program_name(program) in BY_FOLDER


def takes_a_script(program: str) -> bool:
    """Whether the program runs the file that its first argument names."""
    return program_name(program) in INTERPRETERS


def takes_names(words: Sequence[str]) -> bool:
    """Whether a plain word could make the program run something, so that a file's name could too."""
    program = program_name(words[0])
    return program in NESTED or program in ASSIGNING


class Scope(NamedTuple):
    """How far an "always" may go. size: words it names. more: whether others may follow."""

    size: int
    more: bool


def safe_scope(words: Sequence[str]) -> Scope | None:
    """What an "always" may be offered for; None when nothing is safe to offer."""
    program = program_name(words[0])
    if program in RUNNERS or program in INTERPRETERS or program in BUILTINS or names_an_option(words, 1):
        return None
    if words[0] in PLAIN:
        return Scope(1, more=True)
    if words[0] in SUBCOMMANDS and len(words) > 1:
        return _scope_by_subcommand(program, words)
    return Scope(len(words), more=False)


def _scope_by_subcommand(program: str, words: Sequence[str]) -> Scope | None:
    second = words[1]
    whole = Scope(len(words), more=False)
    if second in NESTED.get(program, ()):
        inner = safe_scope(words[2:]) if (program, second) in PASSING and len(words) > 2 else None
        return None if inner is None else Scope(inner.size + 2, inner.more)
    if program in TARGETS or second.startswith("-") or second in FETCHING.get(program, ()):
        return whole
    if (program, second) in SCRIPTS:
        return Scope(3, more=True) if len(words) > 2 and not words[2].startswith("-") else whole
    return Scope(2, more=True)
