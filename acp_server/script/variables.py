"""`$NAME` and `${NAME}` in messages and patterns, and `$repeat` for large ones. Pure."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_WHOLE = re.compile(r"\$([A-Z][A-Z0-9_]*)\Z")
_INSIDE = re.compile(r"\$\{([A-Z][A-Z0-9_]*)\}")
_MAX_REPEATED = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that came out of a variable: in a pattern it means itself, whatever it looks like."""

    value: object


def filled(message: object, variables: Mapping[str, object]) -> object:
    """A message to send. Raises ValueError for a variable that has no value."""
    return _fill(message, variables, lambda value: value, plain=True)


def filled_pattern(pattern: object, variables: Mapping[str, object]) -> object:
    """A pattern to compare with. Raises ValueError for a variable that has no value."""
    return _fill(pattern, variables, Literal, plain=False)


def _fill(
    value: object, variables: Mapping[str, object], wrap: Callable[[object], object], *, plain: bool
) -> object:
    match value:
        case str():
            return _fill_text(value, variables, wrap, plain=plain)
        case list():
            return [_fill(one, variables, wrap, plain=plain) for one in value]
        case {"$repeat": repeated, **others} if not others:
            return wrap(_repeat(repeated, variables))
        case {"$regex": str() as regex, **others} if not plain:
            rest = {key: _fill(one, variables, wrap, plain=plain) for key, one in others.items()}
            return {"$regex": _INSIDE.sub(lambda name: re.escape(_text(name[1], variables)), regex), **rest}
        case dict():
            return {key: _fill(one, variables, wrap, plain=plain) for key, one in value.items()}
        case _:
            return value


def _fill_text(
    text: str, variables: Mapping[str, object], wrap: Callable[[object], object], *, plain: bool
) -> object:
    if whole := _WHOLE.match(text):
        return wrap(_value(whole[1], variables))
    if _INSIDE.search(text):
        return wrap(_INSIDE.sub(lambda name: _text(name[1], variables), text))
    # In a pattern the doubled sign is kept, for the comparison to tell it from a matcher.
    return text[1:] if plain and text.startswith("$$") else text


def _value(name: str, variables: Mapping[str, object]) -> object:
    if name not in variables:
        known = ", ".join(sorted(variables))
        raise ValueError(f"the variable {name} has no value here; those that have: {known}")
    return variables[name]


def _text(name: str, variables: Mapping[str, object]) -> str:
    return str(_value(name, variables))


def _repeat(repeated: object, variables: Mapping[str, object]) -> str:
    match repeated:
        case [str() as text, int() as times] if times >= 0 and len(text) * times <= _MAX_REPEATED:
            return str(filled(text, variables)) * times
    raise ValueError('$repeat is [text, times], as in {"$repeat": ["a", 1000]}')
