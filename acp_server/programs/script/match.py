"""Patterns against JSON values: whether they agree, what was captured, and where they first differ. Pure.

A pattern is a JSON value. An object agrees when each of its keys does (others may be there); a list
element by element; a string like "$any" or an object whose keys all begin with $ is a matcher.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeGuard

from acp_server.programs.script.steps import Literal


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


ABSENT: Final = _Absent()
"""Stands for a key that is not there."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where they differ. path: `.params.update[0]`, '' for the whole.

    agreed: how many leaves agreed before, to tell near from far.
    """

    path: str
    expected: object
    came: object
    agreed: int


@dataclass(slots=True)
class _State:
    captures: dict[str, object] = field(default_factory=dict)
    agreed: int = 0
    exact: bool = False


class _Differs(Exception):
    def __init__(self, path: str, expected: object, came: object) -> None:
        super().__init__(path)
        self.path = path
        self.expected = expected
        self.came = came


def compare(pattern: object, value: object) -> Difference | dict[str, object]:
    """What was captured when they agree, else the first difference."""
    state = _State()
    try:
        _compare(state, pattern, value, "")
    except _Differs as differs:
        return Difference(differs.path, differs.expected, differs.came, state.agreed)
    return state.captures


def is_matcher(pattern: Mapping[str, object]) -> bool:
    """Whether an object is a matcher and not an object to compare with."""
    return bool(pattern) and all(key.startswith("$") for key in pattern)


CAPTURE = re.compile(r"\$capture:([A-Z][A-Z0-9_]*)\Z")


def _compare(state: _State, pattern: object, value: object, path: str) -> None:
    match pattern:
        case Literal(value=literal):
            _equal(state, literal, value, path)
        case dict() if is_matcher(pattern):
            for name, argument in pattern.items():
                OPERATORS[name](state, argument, value, path)
        case dict():
            _compare_object(state, pattern, value, path)
        case list():
            _compare_list(state, pattern, value, path)
        case str() if pattern.startswith("$"):
            _compare_word(state, pattern, value, path)
        case _:
            _equal(state, pattern, value, path)


def _compare_object(state: _State, pattern: Mapping[str, object], value: object, path: str) -> None:
    if not isinstance(value, dict):
        raise _Differs(path, pattern, value)
    for key, wanted in pattern.items():
        _compare(state, wanted, value.get(key, ABSENT), f"{path}.{key}")
    if state.exact:
        for key in value:
            if key not in pattern:
                raise _Differs(f"{path}.{key}", ABSENT, value[key])


def _compare_list(state: _State, pattern: list[object], value: object, path: str) -> None:
    if not isinstance(value, list):
        raise _Differs(path, pattern, value)
    head, rest = pattern, None
    if pattern and isinstance(pattern[-1], dict) and "$rest" in pattern[-1]:
        head, rest = pattern[:-1], pattern[-1]["$rest"]
    for index, wanted in enumerate(head):
        _compare(state, wanted, value[index] if index < len(value) else ABSENT, f"{path}[{index}]")
    for index in range(len(head), len(value)):
        if rest is None:
            raise _Differs(f"{path}[{index}]", ABSENT, value[index])
        if rest is not True:
            _compare(state, rest, value[index], f"{path}[{index}]")


def _compare_word(state: _State, word: str, value: object, path: str) -> None:
    if word.startswith("$$"):
        _equal(state, word[1:], value, path)
    elif captured := CAPTURE.match(word):
        _capture(state, captured[1], value, path)
    elif not WORDS[word](value):
        raise _Differs(path, word, value)
    else:
        state.agreed += 1


def _equal(state: _State, wanted: object, value: object, path: str) -> None:
    # By type too: 1, 1.0 and true are three values on the wire.
    if type(wanted) is not type(value) or wanted != value:
        raise _Differs(path, wanted, value)
    state.agreed += 1


def _require(state: _State, holds: bool, name: str, argument: object, value: object, path: str) -> None:
    if not holds:
        raise _Differs(path, {name: argument}, value)
    state.agreed += 1


def _attempt(state: _State, pattern: object, value: object) -> bool:
    """Whether it agrees; what it captured is kept only then."""
    inner = _State(dict(state.captures), 0, state.exact)
    try:
        _compare(inner, pattern, value, "")
    except _Differs:
        return False
    state.captures.update(inner.captures)
    return True


def _exact(state: _State, argument: object, value: object, path: str) -> None:
    before, state.exact = state.exact, True
    try:
        _compare(state, argument, value, path)
    finally:
        state.exact = before


def _regex(state: _State, argument: object, value: object, path: str) -> None:
    holds = isinstance(value, str) and re.search(str(argument), value) is not None
    _require(state, holds, "$regex", argument, value, path)


def _contains(state: _State, argument: object, value: object, path: str) -> None:
    wanted = argument.value if isinstance(argument, Literal) else argument
    if isinstance(value, str):
        holds = isinstance(wanted, str) and wanted in value
    elif isinstance(value, list):
        holds = any(_attempt(state, argument, one) for one in value)
    else:
        holds = False
    _require(state, holds, "$contains", wanted, value, path)


def _len(state: _State, argument: object, value: object, path: str) -> None:
    if not isinstance(value, str | list | dict):
        raise _Differs(path, {"$len": argument}, value)
    _compare(state, argument, len(value), f"{path}.$len")


def _capture(state: _State, argument: object, value: object, path: str) -> None:
    if value is ABSENT:
        raise _Differs(path, f"$capture:{argument}", value)
    state.captures[str(argument)] = value
    state.agreed += 1


def _absent(state: _State, argument: object, value: object, path: str) -> None:
    _require(state, (value is ABSENT) == bool(argument), "$absent", argument, value, path)


def _not(state: _State, argument: object, value: object, path: str) -> None:
    _require(state, not _attempt(_State(exact=state.exact), argument, value), "$not", argument, value, path)


def _one_of(state: _State, argument: object, value: object, path: str) -> None:
    choices = argument if isinstance(argument, list) else []
    holds = any(_attempt(state, choice, value) for choice in choices)
    _require(state, holds, "$one_of", argument, value, path)


def _all(state: _State, argument: object, value: object, path: str) -> None:
    for one in argument if isinstance(argument, list) else []:
        _compare(state, one, value, path)


def _ordered(name: str, test: Callable[[float, float], bool]) -> "_Operator":
    def check(state: _State, argument: object, value: object, path: str) -> None:
        bound = argument.value if isinstance(argument, Literal) else argument
        holds = _is_number(value) and _is_number(bound) and test(value, bound)
        _require(state, holds, name, bound, value, path)

    return check


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


_Operator = Callable[[_State, object, object, str], None]

WORDS: dict[str, Callable[[object], bool]] = {
    "$any": lambda value: value is not ABSENT,
    "$string": lambda value: isinstance(value, str),
    "$int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "$number": _is_number,
    "$bool": lambda value: isinstance(value, bool),
    "$null": lambda value: value is None,
    "$object": lambda value: isinstance(value, dict),
    "$array": lambda value: isinstance(value, list),
}
OPERATORS: dict[str, _Operator] = {
    "$exact": _exact,
    "$regex": _regex,
    "$contains": _contains,
    "$len": _len,
    "$capture": _capture,
    "$absent": _absent,
    "$not": _not,
    "$one_of": _one_of,
    "$all": _all,
    "$gte": _ordered("$gte", lambda value, bound: value >= bound),
    "$gt": _ordered("$gt", lambda value, bound: value > bound),
    "$lte": _ordered("$lte", lambda value, bound: value <= bound),
    "$lt": _ordered("$lt", lambda value, bound: value < bound),
}
