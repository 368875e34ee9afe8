"""A tool's parameters as one table: the schema that a model is told, and the check of what it sends.

Unknown names are refused, not ignored: a model that says `offset` where the tool says `line` must hear
of it instead of getting another answer than it asked for. null, and "" for an optional string, mean
"not given". A whole number may come as 3 or 3.0.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from runtime.errors import ToolError
from runtime.rows import ToolSpec
from runtime.tools.paths import quote, shorten

Kind = Literal["string", "integer", "boolean"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. minimum and maximum are for integers, and inclusive."""

    name: str
    kind: Kind
    description: str
    required: bool = False
    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class Arguments:
    """Checked arguments; what was not given is absent."""

    values: Mapping[str, str | int | bool]

    def text(self, name: str, default: str = "") -> str:
        """A string argument."""
        return str(self.values.get(name, default))

    def integer(self, name: str, default: int) -> int:
        """A whole-number argument."""
        return int(self.values.get(name, default))

    def flag(self, name: str, default: bool) -> bool:
        """A true-or-false argument."""
        return bool(self.values.get(name, default))


def tool_spec(name: str, description: str, parameters: Sequence[Parameter]) -> ToolSpec:
    """The spec with its schema as compact JSON; the same table always gives the same bytes."""
    schema = {
        "type": "object",
        "properties": {parameter.name: _property(parameter) for parameter in parameters},
        "required": [parameter.name for parameter in parameters if parameter.required],
        "additionalProperties": False,
    }
    return ToolSpec(name, description, json.dumps(schema, separators=(",", ":"), ensure_ascii=False))


def check(tool: str, parameters: Sequence[Parameter], arguments: Mapping[str, object]) -> Arguments:
    """The arguments by the table. Raises ToolError that names the argument and what it must be."""
    table = {parameter.name: parameter for parameter in parameters}
    for name in arguments:
        if name not in table:
            known = ", ".join(table)
            raise ToolError(f"unknown argument {shorten(quote(name), 60)}; {tool} takes {known}")
    values: dict[str, str | int | bool] = {}
    for parameter in parameters:
        value = arguments.get(parameter.name)
        if value is None or (value == "" and not parameter.required):
            if parameter.required:
                raise ToolError(f"{tool} needs the argument {parameter.name} ({_wanted(parameter)})")
            continue
        values[parameter.name] = _checked(parameter, value)
    return Arguments(values)


def _checked(parameter: Parameter, value: object) -> str | int | bool:
    if parameter.kind == "string" and isinstance(value, str):
        return value
    if parameter.kind == "boolean" and isinstance(value, bool):
        return value
    if parameter.kind == "integer":
        return _integer(parameter, value)
    raise _wrong(parameter, value)


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
    if parameter.kind != "integer":
        return {"string": "a string", "boolean": "true or false"}[parameter.kind]
    if parameter.minimum is not None and parameter.maximum is not None:
        return f"a whole number from {parameter.minimum} to {parameter.maximum}"
    return "a whole number" if parameter.minimum is None else f"a whole number, {parameter.minimum} or more"


def _property(parameter: Parameter) -> dict[str, str | int]:
    made: dict[str, str | int] = {"type": parameter.kind, "description": parameter.description}
    if parameter.minimum is not None:
        made["minimum"] = parameter.minimum
    if parameter.maximum is not None:
        made["maximum"] = parameter.maximum
    return made
