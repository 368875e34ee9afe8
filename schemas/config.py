"""The settings file as people write it: every key, its type and its bounds. Knows no file and no default.

Typed dictionaries whose annotations carry pydantic-core schemas: the validator is built in about a
millisecond, where the same model classes took fifteen, and a new session waits for it. Every key may be
absent, since several sources make up one configuration; what must be there in the end is checked on the
merged tree. A key stands here only if something in the product reads it.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Literal, TypedDict, cast, get_args, get_origin, get_type_hints, is_typeddict

from pydantic_core import CoreSchema, PydanticCustomError, SchemaValidator
from pydantic_core.core_schema import (
    bool_schema,
    dict_schema,
    float_schema,
    int_schema,
    literal_schema,
    no_info_plain_validator_function,
    str_schema,
    typed_dict_field,
    typed_dict_schema,
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
VariableName = Annotated[str, _text(r"^[A-Za-z_][A-Za-z0-9_]*$")]
HeaderName = Annotated[str, _text(r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
HeaderValue = Annotated[str, _text(r"^[\x20-\x7e]*$")]
Flag = Annotated[bool, bool_schema(strict=True)]
Count = Annotated[int, int_schema(strict=True, ge=0, le=LARGEST)]
Positive = Annotated[int, int_schema(strict=True, ge=1, le=LARGEST)]
Ratio = Annotated[float, float_schema(strict=True)]
Slack = Annotated[float, float_schema(strict=True, ge=0, lt=1)]
Json = Annotated[object, no_info_plain_validator_function(_json_value)]

ProviderKind = Literal["openai", "openai_responses", "anthropic", "scripted"]
PresetName = Literal["tight", "local_small", "balanced", "unbounded"]
HistoryUnit = Literal["turns", "messages"]
RunningTurnOverflow = Literal["fail", "shorten"]
ToolMode = Literal["native", "prompt"]
CounterName = Literal["heuristic", "byte-classes", "o200k_base", "cl100k_base"]
TrimUpdates = Literal["always", "negotiated", "off"]
VisibleNotice = Literal["auto", "always", "never"]


class AgentSection(TypedDict, total=False):
    """[agents.NAME]: a provider, its model, and how much of the conversation it is sent."""

    provider: Line
    model: Line
    runtime_profile: Line
    system_prompt: Text


class ProviderSection(TypedDict, total=False):
    """[providers.NAME]: an endpoint and the model behind it. Sizes in tokens; 0 as window: not known.

    tools: `prompt` for a model that has no native tool calls. token_counter: how its requests are estimated.
    """

    kind: ProviderKind
    base_url: Address
    api_key_env: VariableName
    model: Line
    context_window: Count
    max_output_tokens: Positive
    output_counted_apart: Flag
    tools: ToolMode
    token_counter: CounterName
    headers: dict[HeaderName, HeaderValue]
    script: Line
    options: dict[Line, Json]


class PruningSection(TypedDict, total=False):
    """[runtime_profiles.NAME.history_pruning]. The last two keys are of older files and change nothing."""

    enabled: Flag
    max_tokens: Count
    keep_recent: Count
    collapse_tool_results: Flag


class ProfileSection(TypedDict, total=False):
    """[runtime_profiles.NAME]: limits of history, of tool results and of a turn."""

    preset: PresetName
    max_history_messages: Count
    history_unit: HistoryUnit
    max_context_tokens: Count
    context_compact_ratio: Ratio
    trim_slack_ratio: Slack
    keep_tool_context_turns: Count
    max_tool_result_chars: Count
    max_tool_iterations: Positive
    running_turn_overflow: RunningTurnOverflow
    history_pruning: PruningSection


class AcpSection(TypedDict, total=False):
    """[acp]: how a client is told that history was trimmed."""

    history_trimmed: TrimUpdates
    visible_trim_notice: VisibleNotice


class ConfigFile(TypedDict, total=False):
    """The whole file."""

    default_agent: Line
    store: Line
    agents: dict[Line, AgentSection]
    providers: dict[Line, ProviderSection]
    runtime_profiles: dict[Line, ProfileSection]
    acp: AcpSection


def validate(tree: Mapping[str, object]) -> ConfigFile:
    """`tree` with its type known. Raises pydantic_core.ValidationError, all faults in one."""
    return cast(ConfigFile, _validator().validate_python(tree))


def keys_of(section: object) -> tuple[str, ...]:
    """The keys a section class knows."""
    return tuple(get_type_hints(section)) if is_typeddict(section) else ()


def kind_at(key: tuple[str, ...]) -> object:
    """The annotation of `key` (a section class, `dict[…]`, a value's type), or None for an unknown key."""
    here: object = ConfigFile
    for part in key:
        if is_typeddict(here):
            here = get_type_hints(here, include_extras=True).get(part)
        elif get_origin(here) is dict:
            here = get_args(here)[1]
        else:
            return None
    return here


def takes_text(key: tuple[str, ...]) -> bool:
    """Whether `key` is a value that only text can be."""
    kind = kind_at(key)
    return kind is not None and _schema(kind)["type"] in ("str", "literal")


@cache
def _validator() -> SchemaValidator:
    return SchemaValidator(_schema(ConfigFile))


def _schema(kind: object) -> CoreSchema:
    if is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        fields = {name: typed_dict_field(_schema(inner), required=False) for name, inner in hints.items()}
        return typed_dict_schema(fields, extra_behavior="forbid")
    if get_origin(kind) is dict:
        of_key, of_value = get_args(kind)
        return dict_schema(_schema(of_key), _schema(of_value), strict=True)
    if get_origin(kind) is Literal:
        return literal_schema(list(get_args(kind)))
    return cast(CoreSchema, get_args(kind)[1])
