"""Checks ACP messages against the official schema by method. Knows nothing of our code.

One exception, by name: a `session/update` of kind `history_trimmed` is no kind of ACP v1 and is checked
against the small schema here instead. `Conformance(trim_exception=False)` has no exception at all.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from jsonschema import Draft202012Validator

DATA = Path(__file__).parents[1] / "data" / "acp"

Side = Literal["agent", "client"]
Edition = Literal["schema-v1", "schema-v1-unstable", "schema-v2"]

TRIM_FACTS: dict[str, object] = {
    "droppedMessages": {"type": "integer", "minimum": 1},
    "keptTurns": {"type": "integer", "minimum": 0},
    "reason": {"type": "string", "minLength": 1},
}
OWN_SCHEMAS: Mapping[str, dict[str, object]] = {
    "history_trimmed": {
        "type": "object",
        "required": ["sessionId", "update"],
        "additionalProperties": False,
        "properties": {
            "sessionId": {"type": "string"},
            "update": {
                "type": "object",
                "required": ["sessionUpdate", *TRIM_FACTS],
                "additionalProperties": False,
                "properties": {"sessionUpdate": {"const": "history_trimmed"}, **TRIM_FACTS},
            },
        },
    },
    "_wholeturn/history_trimmed": {
        "type": "object",
        "required": ["sessionId", *TRIM_FACTS],
        "additionalProperties": False,
        "properties": {"sessionId": {"type": "string"}, **TRIM_FACTS},
    },
}
GATED = {
    "notice": "notices",
    "compaction_update": "compaction",
    "compaction_summary_chunk": "compaction",
}
"""Kinds of update that only a client which offered `clientCapabilities.session.X` may be sent."""


class NonConformant(AssertionError):
    """A message that the schema does not allow; the text says where and why."""


@cache
def definitions(edition: Edition = "schema-v1") -> dict[str, dict[str, object]]:
    """All named types of the schema. Where a union is open to others, to those with an underscore alone."""
    loaded: dict[str, dict[str, object]] = json.loads((DATA / f"{edition}.json").read_text())["$defs"]
    if edition == "schema-v2":
        _close(loaded)
    return loaded


def _close(part: object) -> None:
    """Readers must take any name; who writes may make up only names that begin with an underscore."""
    if isinstance(part, list):
        for one in part:
            _close(one)
    elif isinstance(part, dict):
        if part.get("title") in ("other", "unknown"):
            # The discriminator is the one property that the branch forbids known values of.
            places = part.get("properties", {}).values() if part["type"] == "object" else [part]
            for place in places:
                place |= {"pattern": "^_"} if place.get("type") == "string" else {}
        for one in list(part.values()):
            _close(one)


@cache
def validator(name: str, edition: Edition = "schema-v1") -> Draft202012Validator:
    """A compiled validator for one of the schema's types."""
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": definitions(edition)})


@cache
def _own_validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(OWN_SCHEMAS[name])


@cache
def _types_of(method: str, edition: Edition) -> tuple[str | None, str | None]:
    """The names of a method's params and result types; None where there is none."""
    names = [name for name, body in definitions(edition).items() if body.get("x-method") == method]
    params = [name for name in names if name.endswith(("Request", "Notification"))]
    results = [name for name in names if name.endswith("Response")]
    return (params[0] if params else None), (results[0] if results else None)


def check_type(name: str, value: object, edition: Edition = "schema-v1") -> None:
    """Raise NonConformant unless the value is of the named type."""
    _check(validator(name, edition), value, name)


def check_params(
    method: str, params: object, *, trim_exception: bool = True, edition: Edition = "schema-v1"
) -> None:
    """Raise NonConformant unless a call of this method may have these params, from either side."""
    kind = update_kind(method, params)
    if kind == "history_trimmed" and trim_exception:
        _check(_own_validator(kind), params, kind)
    elif method in OWN_SCHEMAS:
        _check(_own_validator(method), params, method)
    elif (name := _types_of(method, edition)[0]) is not None:
        # Some clients leave `params` out where every key is optional.
        check_type(name, {} if params is None else params, edition)
    elif not method.startswith("_"):
        raise NonConformant(f"{method} is no method of ACP")


def check_result(method: str, result: object, edition: Edition = "schema-v1") -> None:
    """Raise NonConformant unless the method may answer so."""
    name = _types_of(method, edition)[1]
    if name is None:
        raise NonConformant(f"{method} has no result")
    check_type(name, result, edition)


@cache
def answering_side(method: str, edition: Edition = "schema-v1") -> object:
    """Who takes a method: "agent", "client" or "protocol" for both; extensions go both ways."""
    if method.startswith("_"):
        return "protocol"
    bodies = definitions(edition).values()
    return next((body["x-side"] for body in bodies if body.get("x-method") == method), None)


def update_kind(method: object, params: object) -> str | None:
    """The kind of a `session/update`; None for anything else."""
    if method != "session/update" or not isinstance(params, dict):
        return None
    update = params.get("update")
    kind = update.get("sessionUpdate") if isinstance(update, dict) else None
    return kind if isinstance(kind, str) else None


class Conformance:
    """Watches both directions of one connection and raises NonConformant at the first bad message."""

    def __init__(self, *, trim_exception: bool = True, edition: Edition = "schema-v1") -> None:
        self._trim_exception = trim_exception
        self._edition = edition
        self._open: dict[tuple[Side, str], str] = {}
        self._offered: set[str] = set()

    def line(self, side: Side, line: bytes | str) -> dict[str, object]:
        """One line as `side` sent it."""
        frame = json.loads(line)
        if not isinstance(frame, dict):
            raise NonConformant("a line must hold one object")
        self.frame(side, frame)
        return frame

    def frame(self, side: Side, frame: Mapping[str, object]) -> None:
        """One message as `side` sent it. What a test's client sends wrong on purpose is not for here."""
        if frame.get("jsonrpc") != "2.0":
            raise NonConformant('jsonrpc must be "2.0"')
        if "method" in frame:
            self._call(side, frame)
        else:
            self._reply(side, frame)

    def _call(self, side: Side, frame: Mapping[str, object]) -> None:
        method, params = frame["method"], frame.get("params")
        if not isinstance(method, str) or not frame.keys() <= {"jsonrpc", "id", "method", "params"}:
            raise NonConformant(f"malformed call: {sorted(frame)}")
        if answering_side(method, self._edition) not in (_other(side), "protocol"):
            raise NonConformant(f"the {side} must not call {method}")
        check_params(method, params, trim_exception=self._trim_exception, edition=self._edition)
        self._check_gate(update_kind(method, params))
        if method == "initialize" and isinstance(params, dict):
            session = params.get("clientCapabilities", {}).get("session") or {}
            self._offered = {name for name, value in session.items() if value is not None}
        if "id" in frame:
            self._open[side, json.dumps(frame["id"])] = method

    def _check_gate(self, kind: str | None) -> None:
        gate = None if self._edition == "schema-v2" else GATED.get(kind or "")
        if gate is not None and gate not in self._offered:
            raise NonConformant(f"{kind} sent to a client that did not offer session.{gate}")

    def _reply(self, side: Side, frame: Mapping[str, object]) -> None:
        if "error" in frame:
            _keys(frame, {"jsonrpc", "id", "error"})
            check_type("Error", frame["error"], self._edition)
            self._open.pop((_other(side), json.dumps(frame["id"])), None)
            return
        _keys(frame, {"jsonrpc", "id", "result"})
        method = self._open.pop((_other(side), json.dumps(frame["id"])), None)
        if method is None:
            raise NonConformant(f"a result for no open request: id {frame['id']!r}")
        check_result(method, frame["result"], self._edition)


def _other(side: Side) -> Side:
    return "client" if side == "agent" else "agent"


def _keys(frame: Mapping[str, object], expected: set[str]) -> None:
    if set(frame) != expected:
        raise NonConformant(f"expected exactly the keys {sorted(expected)}, got {sorted(frame)}")


def _check(checker: Draft202012Validator, value: object, name: str) -> None:
    for error in checker.iter_errors(value):
        place = "/".join(str(step) for step in error.absolute_path) or "(root)"
        raise NonConformant(f"{name} at {place}: {error.message[:500]}")
