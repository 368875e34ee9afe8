"""A tool's parameters as one table: the schema that a model is told, and the check of what it sends.

Unknown names are refused, not ignored: a model that says `offset` where the tool says `line` must hear of it
instead of getting another answer than it asked for. null, and "" for an optional string, mean "not given". A
whole number may come as 3 or 3.0. A list holds objects, each by a table of its own. Knows no tool.
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


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. minimum and maximum are for integers, and inclusive.

    choices: all that a string may be. items: the table of a list's objects; a list may not be empty.
    """

    name: str
    kind: Kind
    description: str = ""
    required: bool = False
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    items: "tuple[Parameter, ...]" = ()


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
    """The arguments by the table. Raises ToolError that names the argument and what it must be."""
    table = {parameter.name: parameter for parameter in parameters}
    for name in arguments:
        if name not in table:
            known = ", ".join(table)
            raise ToolError(f"unknown argument {shorten(quote(name), 60)}; {tool} takes {known}")
    values: dict[str, str | int | bool | tuple[Arguments, ...]] = {}
    for parameter in parameters:
        value = arguments.get(parameter.name)
        if value is None or (value == "" and not parameter.required):
            if parameter.required:
                raise ToolError(f"{tool} needs the argument {parameter.name} ({_wanted(parameter)})")
            continue
        values[parameter.name] = _checked(parameter, value)
    return Arguments(values)


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
        raise ToolError(f"{where}: must be an object")
    return check(where, parameter.items, value)


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


def _wrong(parameter: Parameter, value: object) -> ToolError:
    try:
        got = json.dumps(value)
    except (TypeError, ValueError):
        got = type(value).__name__
    return ToolError(f"{parameter.name} must be {_wanted(parameter)}, not {shorten(got, 60)}")


def _wanted(parameter: Parameter) -> str:
    if parameter.choices:
        return f"one of {', '.join(parameter.choices)}"
    if parameter.kind != "integer":
        return _KINDS[parameter.kind]
    if parameter.minimum is not None and parameter.maximum is not None:
        return f"a whole number from {parameter.minimum} to {parameter.maximum}"
    return "a whole number" if parameter.minimum is None else f"a whole number, {parameter.minimum} or more"


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
