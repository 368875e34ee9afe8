"""The check of a pattern when a fixture is read: does each matcher exist, can it take its argument. Pure."""

import re
from collections.abc import Callable, Mapping

from acp_server.programs.script.match import CAPTURE, WORDS, is_matcher

_VARIABLE = re.compile(r"\$[A-Z][A-Z0-9_]*\Z")
_NAME = re.compile(r"[A-Z][A-Z0-9_]*\Z")


def check_pattern(pattern: object) -> None:
    """Raises ValueError for a matcher that does not exist or whose argument cannot be."""
    match pattern:
        case str() if pattern.startswith("$") and not pattern.startswith(("$$", "${")):
            _check_word(pattern)
        case list():
            _check_list(pattern)
        case dict() if is_matcher(pattern):
            _check_matcher(pattern)
        case dict():
            for one in pattern.values():
                check_pattern(one)


def _check_list(pattern: list[object]) -> None:
    for index, one in enumerate(pattern):
        if isinstance(one, dict) and "$rest" in one:
            if index != len(pattern) - 1 or len(one) != 1:
                raise ValueError("$rest stands alone, as the last element of a list")
            check_pattern(one["$rest"])
        else:
            check_pattern(one)


def _check_word(word: str) -> None:
    if word in WORDS or _VARIABLE.match(word) or CAPTURE.match(word):
        return
    known = ", ".join((*WORDS, "$capture:NAME", "$NAME"))
    raise ValueError(f"{word!r} is no matcher (known: {known}); a text that begins with $ is written $$…")


def _check_matcher(pattern: Mapping[str, object]) -> None:
    for name, argument in pattern.items():
        if name in _NESTED:
            check_pattern(argument)
        elif name in _LISTS:
            if not isinstance(argument, list) or not argument:
                raise ValueError(f"{name} takes a list of patterns")
            check_pattern(argument)
        elif name not in _CHECKS:
            known = ", ".join((*_NESTED, *_LISTS, *_CHECKS))
            raise ValueError(f"{name!r} is no matcher; known: {known}")
        elif not _CHECKS[name](argument):
            raise ValueError(f"{name} cannot take {argument!r}")


def _is_bound(argument: object) -> bool:
    if isinstance(argument, str):
        return _VARIABLE.match(argument) is not None
    return isinstance(argument, int | float) and not isinstance(argument, bool)


def _is_regex(argument: object) -> bool:
    if not isinstance(argument, str):
        return False
    try:
        re.compile(argument)
    except re.error as error:
        raise ValueError(f"$regex: {error}") from error
    return True


def _is_pair(argument: object) -> bool:
    return isinstance(argument, list) and len(argument) == 2


def _is_name(argument: object) -> bool:
    return isinstance(argument, str) and _NAME.match(argument) is not None


_NESTED = ("$exact", "$contains", "$len", "$not")
_LISTS = ("$one_of", "$all")
_CHECKS: dict[str, Callable[[object], bool]] = {
    "$regex": _is_regex,
    "$capture": _is_name,
    "$absent": lambda argument: isinstance(argument, bool),
    "$gte": _is_bound,
    "$gt": _is_bound,
    "$lte": _is_bound,
    "$lt": _is_bound,
    "$repeat": _is_pair,
}
MATCHERS = (*_NESTED, *_LISTS, *_CHECKS)
"""All matchers that take an argument, and `$repeat`, which is no matcher but may stand in a pattern."""
