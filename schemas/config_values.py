"""The settings file's values, what each kind of them may be; the keys of `[gateway]`. Knows no default."""

from typing import Annotated, Literal, TypedDict

from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import (
    bool_schema,
    float_schema,
    int_schema,
    no_info_plain_validator_function,
    str_schema,
)

LARGEST = 2**53 - 1
"""Largest whole number that JSON readers everywhere keep exact."""

_NO_CONTROL = r"[^\x00-\x1f\x7f-\x9f]"
_VISIBLE = r"[^\x00-\x20\x7f-\xa0]"


def _json_value(value: object) -> object:
    if isinstance(value, dict):
        for inner in value.values():
            _json_value(inner)
    elif isinstance(value, list):
        for inner in value:
            _json_value(inner)
    elif not isinstance(value, bool | int | float | str):
        raise PydanticCustomError("json_value", "must be text, a number, true, false, a list or a table")
    return value


def _text(pattern: str) -> CoreSchema:
    return str_schema(strict=True, pattern=pattern)


Line = Annotated[str, _text(rf"^{_NO_CONTROL}*{_VISIBLE}{_NO_CONTROL}*$")]
"""One line of text that is not blank."""
Text = Annotated[str, _text(r"^[^\x00]*$")]
Address = Annotated[str, _text(rf"^https?://[^/\s?#]+{_VISIBLE}*$")]
HostName = Annotated[
    str, _text(r"^(?:[A-Za-z0-9._-]*[A-Za-z0-9_-]|[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*)$")
]
WebOrigin = Annotated[str, _text(r"^https?://[^/\s?#@]+$")]
VariableName = Annotated[str, _text(r"^[A-Za-z_][A-Za-z0-9_]*$")]
HeaderName = Annotated[str, _text(r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
HeaderValue = Annotated[str, _text(r"^[\x20-\x7e]*$")]
Flag = Annotated[bool, bool_schema(strict=True)]
Count = Annotated[int, int_schema(strict=True, ge=0, le=LARGEST)]
Positive = Annotated[int, int_schema(strict=True, ge=1, le=LARGEST)]
Port = Annotated[int, int_schema(strict=True, ge=0, le=65535)]
MessageBytes = Annotated[int, int_schema(strict=True, ge=1024, le=64 * 1024 * 1024)]
Ratio = Annotated[float, float_schema(strict=True)]
Slack = Annotated[float, float_schema(strict=True, ge=0, lt=1)]
Money = Annotated[float, float_schema(strict=True, ge=0, allow_inf_nan=False)]
Json = Annotated[object, no_info_plain_validator_function(_json_value)]

ProviderKind = Literal["openai", "openai_responses", "anthropic", "ollama", "local", "scripted"]
PresetName = Literal["tight", "local_small", "balanced", "unbounded"]
HistoryUnit = Literal["turns", "messages"]
RunningTurnOverflow = Literal["fail", "shorten"]
Retention = Literal["recent", "head-tail"]
DroppedTurns = Literal["omit", "summarize"]
ToolMode = Literal["native", "prompt"]
McpType = Literal["http", "sse"]
CounterName = Literal["heuristic", "byte-classes", "o200k_base", "cl100k_base"]
PermissionMode = Literal["ask", "accept_edits", "plan", "yolo"]
TrimUpdates = Literal["always", "negotiated", "off"]
VisibleNotice = Literal["auto", "always", "never"]


class GatewaySection(TypedDict, total=False):
    """[gateway]: where `wholeturn gateway` listens, who may come, and how much of it.

    allowed_hosts: names it is reached by beside its own address. allowed_origins: of pages beside its own.
    max_message_bytes: of one WebSocket message. detached_turn_seconds: how long a turn goes on when the last
    client of its session has gone.
    """

    host: Line
    port: Port
    tls_cert: Line
    tls_key: Line
    allowed_hosts: list[HostName]
    allowed_origins: list[WebOrigin]
    max_connections: Positive
    max_message_bytes: MessageBytes
    requests_per_second: Positive
    detached_turn_seconds: Count
