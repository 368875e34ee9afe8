"""A tool's parameters as one table: the schema that a model is told, and the check of what it sends.

Unknown names are refused, not ignored: a model that says `offset` where the tool says `line` must hear
of it instead of getting another answer than it asked for, and sees an example of a right call. null, and ""
or [] for what is optional, mean "not given". A whole number may come as 3 or 3.0. A list holds objects, each
by a table of its own.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from runtime.tools.sandbox.paths import quote, shorten
from runtime.values.errors import ToolError
from runtime.values.rows import ToolSpec

Kind = Literal["string", "integer", "boolean", "list"]


_KINDS = {
    "string": "a string",
    "boolean": "true or false",
    "list": "a list of objects, not empty",
}


class ArgumentError(ToolError):
    """Arguments that are none of this tool."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. minimum and maximum are for integers, and inclusive.

    choices: all that a string may be. items: the table of a list's objects; a list may not be empty.
    example: what it is in the example of a call, None: it is in there when it is required. may_be_empty: ""
    is a value of its own though it is optional.
    """

    name: str
    kind: Kind
    description: str = ""
    required: bool = False
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    items: "tuple[Parameter, ...]" = ()
    example: str | int | None = None
    may_be_empty: bool = False


@dataclass(frozen=True, slots=True)
class Arguments:
    """Checked arguments; what was not given is absent."""

    values: "Mapping[str, str | int | bool | tuple[Arguments, ...]]"

    def rows(self, name: str) -> "tuple[Arguments, ...]":
        """A list's objects, each checked."""
        found = self.values.get(name, ())
        return found if isinstance(found, tuple) else ()

    def text(self, name: str, default: str = "") -> str:
        """A string argument."""
        return str(self.values.get(name, default))

    def integer(self, name: str, default: int) -> int:
        """A whole-number argument."""
        found = self.values.get(name, default)
        return default if isinstance(found, tuple) else int(found)

    def flag(self, name: str, default: bool) -> bool:
        """A true-or-false argument."""
        return bool(self.values.get(name, default))


def tool_spec(name: str, description: str, parameters: Sequence[Parameter]) -> ToolSpec:
    """The spec with its schema as compact JSON; the same table always gives the same bytes.

    Every request carries it: what goes without saying (no other arguments, counting from 1) is not in it.
    """
    return ToolSpec(
        name, description, json.dumps(_object(parameters), separators=(",", ":"), ensure_ascii=False)
    )


def check(tool: str, parameters: Sequence[Parameter], arguments: Mapping[str, object]) -> Arguments:
    """The arguments by the table. Raises ArgumentError: the argument, what it must be, and a right call."""
    try:
        return _object_of(tool, parameters, arguments)
    except ArgumentError as error:
        raise wrong_call(error.message, parameters) from None


def wrong_call(message: str, parameters: Sequence[Parameter]) -> ArgumentError:
    """The message with an example of a right call."""
    shown = json.dumps(_example(parameters), separators=(",", ":"), ensure_ascii=False)
    return ArgumentError(f"{message}. For example: {shown}")


def _object_of(what: str, parameters: Sequence[Parameter], arguments: Mapping[str, object]) -> Arguments:
    table = {parameter.name: parameter for parameter in parameters}
    for name in arguments:
        if name not in table:
            known = ", ".join(table)
            raise ArgumentError(f"unknown argument {shorten(quote(name), 60)}; {what} takes {known}")
    values: dict[str, str | int | bool | tuple[Arguments, ...]] = {}
    for parameter in parameters:
        value = arguments.get(parameter.name)
        if parameter.required and value is None:
            raise ArgumentError(f"{what} needs the argument {parameter.name} ({_wanted(parameter)})")
        if not (value is None or _is_left_out(parameter, value)):
            values[parameter.name] = _checked(parameter, value)
    return Arguments(values)


def _is_left_out(parameter: Parameter, value: object) -> bool:
    return not parameter.required and value in ("", []) and not (value == "" and parameter.may_be_empty)


def _checked(parameter: Parameter, value: object) -> str | int | bool | tuple[Arguments, ...]:
    if parameter.kind == "list" and isinstance(value, list) and value:
        return tuple(_row(parameter, number, row) for number, row in enumerate(value, 1))
    if parameter.kind == "string" and isinstance(value, str):
        if parameter.choices and value not in parameter.choices:
            raise _wrong(parameter, value)
        return value
    if parameter.kind == "boolean" and isinstance(value, bool):
        return value
    if parameter.kind == "integer":
        return _integer(parameter, value)
    raise _wrong(parameter, value)


def _row(parameter: Parameter, number: int, value: object) -> Arguments:
    where = f"{parameter.name}, entry {number}"
    if not isinstance(value, dict):
        raise ArgumentError(f"{where}: must be an object")
    return _object_of(where, parameter.items, value)


def _integer(parameter: Parameter, value: object) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    # bool is an int to Python and none to JSON.
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(parameter, value)
    low, high = parameter.minimum, parameter.maximum
    if (low is not None and value < low) or (high is not None and value > high):
        raise _wrong(parameter, value)
    return value


def _wrong(parameter: Parameter, value: object) -> ArgumentError:
    try:
        got = json.dumps(value)
    except (TypeError, ValueError):
        got = type(value).__name__
    return ArgumentError(f"{parameter.name} must be {_wanted(parameter)}, not {shorten(got, 60)}")


def _wanted(parameter: Parameter) -> str:
    if parameter.choices:
        return f"one of {', '.join(parameter.choices)}"
    if parameter.kind != "integer":
        return _KINDS[parameter.kind]
    if parameter.minimum is not None and parameter.maximum is not None:
        return f"a whole number from {parameter.minimum} to {parameter.maximum}"
    return "a whole number" if parameter.minimum is None else f"a whole number, {parameter.minimum} or more"


def _example(parameters: Sequence[Parameter]) -> dict[str, object]:
    shown = [parameter for parameter in parameters if parameter.required or parameter.example is not None]
    return {parameter.name: _example_value(parameter) for parameter in shown}


def _example_value(parameter: Parameter) -> object:
    if parameter.example is not None:
        return parameter.example
    if parameter.kind == "list":
        return [_example(parameter.items)]
    if parameter.choices:
        return parameter.choices[0]
    return {"integer": parameter.minimum or 1, "boolean": True}.get(parameter.kind, "…")


def _object(parameters: Sequence[Parameter]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {parameter.name: _property(parameter) for parameter in parameters},
        "required": [parameter.name for parameter in parameters if parameter.required],
    }


def _property(parameter: Parameter) -> dict[str, object]:
    made: dict[str, object] = {"type": "array" if parameter.kind == "list" else parameter.kind}
    if parameter.description:
        made["description"] = parameter.description
    if parameter.choices:
        made["enum"] = list(parameter.choices)
    if parameter.items:
        made["items"] = _object(parameter.items)
    if parameter.minimum not in (None, 0, 1):
        made["minimum"] = parameter.minimum
    if parameter.maximum is not None:
        made["maximum"] = parameter.maximum
    return made


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """withheld: variables that no command gets, since our own keys stand in them.

    private_addresses: fetch_url may reach this machine and the local network.
    """

    withheld: frozenset[str] = frozenset()
    private_addresses: bool = False
