"""A tool's JSON schema, made into one that every provider takes. Pure.

Providers refuse a whole request for one schema that they dislike, so one careless server would close the
session. The server itself still judges the arguments.
"""

import re
from collections.abc import Mapping

import orjson

from schemas.nesting import is_shallow

_NO_PARAMETERS = '{"type":"object","properties":{}}'
_BRANCHES = ("allOf", "anyOf", "oneOf")
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_DROPPED = ("$schema", "$id", "title", *_BRANCHES, "not", "if", "then", "else", "enum", "const")


def parameters_text(schema: Mapping[str, object]) -> str:
    """The schema as compact JSON: an object at the top, with properties and without branches there."""
    if not is_shallow(dict(schema)):
        return _NO_PARAMETERS
    kept = {name: value for name, value in schema.items() if name not in _DROPPED}
    properties = {name: value for name, value in _properties(schema) if _PROPERTY.fullmatch(name)}
    kept |= {"type": "object", "properties": properties}
    required = [name for name in _required(schema) if name in properties]
    kept.pop("required", None)
    if required:
        kept["required"] = required
    try:
        return orjson.dumps(kept).decode()
    except (TypeError, ValueError):
        return _NO_PARAMETERS


def _properties(schema: Mapping[str, object]) -> list[tuple[str, object]]:
    """Those of the top level, and of branches, which a model may have to choose among."""
    found: dict[str, object] = {}
    for part in (*_parts(schema), schema):
        inner = part.get("properties")
        if isinstance(inner, dict):
            found |= inner
    return list(found.items())


def _required(schema: Mapping[str, object]) -> list[str]:
    """What is needed in any case: branches that all hold count, branches to choose among do not."""
    wanted: dict[str, None] = {}
    for part in (schema, *_parts(schema, ("allOf",))):
        names = part.get("required")
        if isinstance(names, list):
            wanted |= dict.fromkeys(name for name in names if isinstance(name, str))
    return list(wanted)


def _parts(schema: Mapping[str, object], words: tuple[str, ...] = _BRANCHES) -> list[Mapping[str, object]]:
    branches = (schema.get(word) for word in words)
    return [
        part for branch in branches if isinstance(branch, list) for part in branch if isinstance(part, dict)
    ]
