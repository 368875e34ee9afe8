"""One line to one message, and one message to one line. Pure; knows no method and no state.

Text that JSON allows and Unicode does not (a lone surrogate, which JavaScript can send) becomes
U+FFFD both ways, instead of failing the line. Ids are kept so that they are echoed exactly.
"""

import json
import re
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeGuard

import orjson

from acp_server.wire.errors import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR

MAX_SENT_LINE: Final = 10 * 1024 * 1024
"""Bytes of the longest line sent: the smallest limit among known clients."""

CANCEL_REQUEST: Final = "$/cancel_request"


class NumberText(NamedTuple):
    """A number that a 64 bit integer cannot hold, as it was written: fractional, or too long."""

    text: str


Id = str | int | NumberText | None
IdKey = tuple[type, Id]
Params = Mapping[str, object] | list[object] | None


class Request(NamedTuple):
    """A call that waits for an answer; its id may be null."""

    id: Id
    method: str
    params: Params = None


class Notification(NamedTuple):
    """A call without id: never answered, whatever happens."""

    method: str
    params: Params = None


class Reply(NamedTuple):
    """The peer's answer to a request of ours, parts as received. error is None when it gave a result."""

    id: object
    result: object = None
    error: object = None


class Garbage(NamedTuple):
    """A line to be answered with an error. id: the request's when it could be read, else None."""

    code: int
    message: str
    id: Id = None


class Ignored(NamedTuple):
    """A line that must not be answered although it is wrong. reason: for the log, without content."""

    reason: str


Message = Request | Notification | Reply | Garbage | Ignored


class Unsendable(Exception):
    """A message that cannot be put on the wire; the text says why, without its content."""


def id_key(request_id: Id) -> IdKey:
    """A key for tables: `1` and `"1"` are different ids."""
    return (type(request_id), request_id)


def is_id(value: object) -> TypeGuard[Id]:
    """Whether a decoded value can be an id. A bool is an int to isinstance, and no id."""
    return isinstance(value, str | int | NumberText | None) and not isinstance(value, bool)


def wire_id(request_id: Id) -> object:
    """The id as `encode` takes it."""
    return orjson.Fragment(request_id.text) if isinstance(request_id, NumberText) else request_id


# ---------------------------------------------------------------- reading

# Walks the escapes from the left, so that an escaped backslash before "ud800" is left alone.
_ESCAPES: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u([dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


def parse(line: bytes) -> Message:
    """What a line says. Never raises; the line must not hold its LF."""
    try:
        text, value = _load(line)
        return _classify(value, text)
    except (ValueError, RecursionError):
        return Garbage(PARSE_ERROR, "Parse error")


def _load(line: bytes) -> tuple[bytes, object]:
    try:
        return line, orjson.loads(line)
    except orjson.JSONDecodeError:
        if _SURROGATE.search(line) is None:
            raise
    mended = _ESCAPES.sub(lambda found: rb"\ufffd" if found[1] else found[0], line)
    return mended, orjson.loads(mended)


def _classify(value: object, text: bytes) -> Message:
    if isinstance(value, list):
        return Garbage(INVALID_REQUEST, "Invalid request: one message a line, batches are not taken")
    if not isinstance(value, dict):
        return Garbage(INVALID_REQUEST, "Invalid request: not an object")
    if "method" in value:
        return _call(value, text)
    if "result" in value or "error" in value:
        # Never answered, not even without an id: two peers could go on answering each other for ever.
        return Reply(value.get("id"), value.get("result"), value.get("error"))
    return Garbage(INVALID_REQUEST, "Invalid request: no method", _readable_id(value, text))


def _call(value: dict[str, object], text: bytes) -> Message:
    method, params = value["method"], value.get("params")
    fault = _fault(value)
    if "id" not in value:
        if not isinstance(method, str):
            return Garbage(INVALID_REQUEST, f"Invalid request: {fault}")
        if fault:
            return Ignored(f"malformed notification: {fault}")
        return Notification(method, _with_exact_id(method, params, text))
    request_id = _readable_id(value, text)
    if request_id is None and value["id"] is not None:
        return Garbage(INVALID_REQUEST, "Invalid request: id must be a string, a number or null")
    if fault or not isinstance(method, str):
        return Garbage(INVALID_REQUEST, f"Invalid request: {fault}", request_id)
    return Request(request_id, method, _structured(params))


def _fault(value: Mapping[str, object]) -> str:
    if value.get("jsonrpc") != "2.0":
        return 'jsonrpc must be "2.0"'
    if not isinstance(value["method"], str):
        return "method must be a string"
    if not isinstance(value.get("params"), dict | list | None):
        return "params must be an object"
    return ""


def _structured(params: object) -> Params:
    return params if isinstance(params, dict | list) else None


def _with_exact_id(method: str, params: object, text: bytes) -> Params:
    if method == CANCEL_REQUEST and isinstance(params, dict) and type(params.get("requestId")) is float:
        return _structured(_exact(text).get("params"))
    return _structured(params)


def _readable_id(value: Mapping[str, object], text: bytes) -> Id:
    found = value.get("id")
    if type(found) is float:
        found = _exact(text).get("id")
    return found if is_id(found) else None


def _exact(text: bytes) -> dict[str, object]:
    """The line once more with every number as written: the fast decoder rounds the long ones."""
    value: dict[str, object] = json.loads(text, parse_float=NumberText, parse_int=NumberText)
    return value


# ---------------------------------------------------------------- writing


def encode(message: Mapping[str, object]) -> bytes:
    """One line with its LF. Raises Unsendable when it is no JSON or longer than `MAX_SENT_LINE`."""
    try:
        line = orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        line = _encode_mended(message)
    if len(line) > MAX_SENT_LINE:
        raise Unsendable(f"{len(line)} bytes are more than the {MAX_SENT_LINE} that a line may have")
    return line


def encode_response(message: Mapping[str, object]) -> bytes:
    """One line with its LF. Falls back to an internal error with the same id, so that one is always sent."""
    try:
        return encode(message)
    except Unsendable as refusal:
        error = {"code": INTERNAL_ERROR, "message": f"Internal error: the answer cannot be sent ({refusal})"}
        return encode({"jsonrpc": "2.0", "error": error, "id": message.get("id")})


def _encode_mended(message: Mapping[str, object]) -> bytes:
    try:
        return orjson.dumps(_mended(message), option=orjson.OPT_APPEND_NEWLINE)
    except (TypeError, RecursionError) as error:
        raise Unsendable("it is not JSON") from error


def _mended(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, Mapping):
        return {_mended(key): _mended(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mended(item) for item in value]
    return value
