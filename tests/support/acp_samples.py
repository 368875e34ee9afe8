"""Hypothesis strategies made from the official schema: valid values of any of its named types.

Covers the part of JSON Schema that the ACP schema uses. Strings come short; `PLAIN` overrides fields for
which our rules are narrower than the schema's (an absolute path is only a string there).
"""

from collections.abc import Mapping
from functools import cache

from hypothesis import strategies as st

from tests.support.acp_schema import definitions

Schema = Mapping[str, object]

PATHS = st.sampled_from(["/", "/home/me/work", "C:\\work", "d:/work", "\\\\host\\share\\x"])
PLAIN: Mapping[str, st.SearchStrategy[object]] = {
    "cwd": PATHS,
    "additionalDirectories": st.lists(PATHS, max_size=2),
    "_meta": st.dictionaries(
        st.text(max_size=5), st.integers(-(2**63), 2**63 - 1) | st.booleans(), max_size=2
    ),
}
_INTEGERS = {"uint16": 2**16 - 1, "uint32": 2**32 - 1, "uint64": 2**63 - 1, "int64": 2**63 - 1}


@cache
def values_of(name: str) -> st.SearchStrategy[object]:
    """Valid values of the named type."""
    return st.deferred(lambda: _from(definitions()[name]))


def _from(schema: Schema) -> st.SearchStrategy[object]:
    if "$ref" in schema:
        return values_of(str(schema["$ref"]).rpartition("/")[2])
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(_list(schema["enum"]))
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices is not None and "properties" not in schema:
        return st.one_of([_from(choice) for choice in _parts(choices)])
    if "allOf" in schema:
        return _merged(schema, _parts(schema["allOf"]))
    return _typed(schema)


def _merged(schema: Schema, parts: list[Schema]) -> st.SearchStrategy[object]:
    if "properties" not in schema:
        return _from(parts[0])
    return st.tuples(_from(parts[0]), _object(schema)).map(lambda pair: {**_dict(pair[0]), **_dict(pair[1])})


def _typed(schema: Schema) -> st.SearchStrategy[object]:
    kinds = schema.get("type", "object")
    if isinstance(kinds, list):
        return st.one_of([_typed({**schema, "type": kind}) for kind in kinds])
    simple: Mapping[object, st.SearchStrategy[object]] = {
        "null": st.none(),
        "boolean": st.booleans(),
        "string": st.text(max_size=8),
        "number": st.floats(allow_nan=False, allow_infinity=False),
    }
    if kinds in simple:
        return simple[kinds]
    if kinds == "integer":
        return st.integers(0, _INTEGERS.get(str(schema.get("format")), 1000))
    if kinds == "array":
        return st.lists(_from(_dict(schema["items"])), max_size=3)
    return _object(schema)


def _object(schema: Schema) -> st.SearchStrategy[object]:
    properties = _dict(schema.get("properties", {}))
    fields = {key: _field(key, _dict(body)) for key, body in properties.items()}
    required = set(_list(schema.get("required", [])))
    return st.fixed_dictionaries(
        {key: value for key, value in fields.items() if key in required},
        optional={key: value for key, value in fields.items() if key not in required},
    )


def _field(key: str, body: Schema) -> st.SearchStrategy[object]:
    # Keys that are paths in one type are capabilities in another.
    is_capability = key == "additionalDirectories" and body.get("type") != "array"
    return PLAIN[key] if key in PLAIN and not is_capability else _from(body)


def _dict(value: object) -> dict[str, object]:
    assert isinstance(value, dict)
    return value


def _list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


def _parts(value: object) -> list[Schema]:
    return [_dict(part) for part in _list(value)]
