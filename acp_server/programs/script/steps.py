"""What a fixture consists of, one frozen value a line, and its variables filled in. Pure.

Patterns and messages are JSON values as parsed; `$NAME`, `${NAME}` and `$repeat` stand in them.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply to a request of the agent: a result, or an error object."""

    value: object
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Awaited:
    """A frame that is waited for. required is False for one that may stay away."""

    pattern: object
    answer: Answer | None = None
    required: bool = True


@dataclass(frozen=True, slots=True)
class Send:
    """Send a message; `jsonrpc` is put in when absent."""

    message: object


@dataclass(frozen=True, slots=True)
class SendText:
    """Send text as it is, no newline added."""

    text: object


@dataclass(frozen=True, slots=True)
class SendBytes:
    """Send bytes as they are."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Expect:
    """The next frame must match. timeout: seconds, None for the run's own."""

    awaited: Awaited
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Until:
    """Skip frames until one matches."""

    awaited: Awaited
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class AnyOrder:
    """The next frames match these, in whatever order."""

    members: tuple[Awaited, ...]
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Optional:
    """A frame that may come before what the next waiting step waits for."""

    awaited: Awaited


@dataclass(frozen=True, slots=True)
class Ignore:
    """From here on, frames like this are taken out (and answered). None: no longer any."""

    awaited: Awaited | None


@dataclass(frozen=True, slots=True)
class Nothing:
    """No frame like this may come for `seconds`. Other frames wait for later steps."""

    pattern: object
    seconds: float


@dataclass(frozen=True, slots=True)
class Text:
    """What the agent said since the last prompt or `text` step. session: only in that one."""

    pattern: object
    session: object = None


@dataclass(frozen=True, slots=True)
class Close:
    """Close the agent's stdin."""


@dataclass(frozen=True, slots=True)
class Kill:
    """Send the agent's process (not its children) a signal."""

    signal: int


@dataclass(frozen=True, slots=True)
class Restart:
    """End the agent and start it anew; variables stay."""


@dataclass(frozen=True, slots=True)
class Exit:
    """The agent ends, with a status that matches (minus the signal's number when killed)."""

    pattern: object
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Set:
    """Give variables their values."""

    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Env:
    """Environment variables for the next start of the agent."""

    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Write:
    """Write a file below `$CWD`."""

    path: str
    content: object


@dataclass(frozen=True, slots=True)
class Note:
    """Says what comes next; shown in a failure."""

    text: str


Action = (
    Send
    | SendText
    | SendBytes
    | Expect
    | Until
    | AnyOrder
    | Optional
    | Ignore
    | Nothing
    | Text
    | Close
    | Kill
    | Restart
    | Exit
    | Set
    | Env
    | Write
    | Note
)


@dataclass(frozen=True, slots=True)
class Step:
    """An action and where it stands. source: the line, for reports."""

    line: int
    action: Action
    source: str


@dataclass(frozen=True, slots=True)
class Script:
    """A parsed fixture. name: as given. folder: where it lies, absolute."""

    name: str
    folder: str
    steps: tuple[Step, ...]


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
