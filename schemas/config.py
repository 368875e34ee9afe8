"""The settings file as people write it: every key, its type and its bounds. Knows no file and no default.

Typed dictionaries whose annotations carry pydantic-core schemas: the validator is built in about a
millisecond, where the same model classes took fifteen, and a new session waits for it. Every key may be
absent, since several sources make up one configuration; what must be there in the end is checked on the
merged tree. A key stands here only if something in the product reads it.
"""

from collections.abc import Mapping
from functools import cache
from typing import Literal, TypedDict, cast, get_args, get_origin, get_type_hints, is_typeddict

from pydantic_core import CoreSchema, SchemaValidator
from pydantic_core.core_schema import (
    dict_schema,
    list_schema,
    literal_schema,
    typed_dict_field,
    typed_dict_schema,
)

from schemas.config_values import (
    Address,
    Count,
    CounterName,
    DroppedTurns,
    Flag,
    GatewaySection,
    HeaderName,
    HeaderValue,
    HistoryUnit,
    Json,
    Line,
    McpType,
    Money,
    PermissionMode,
    Positive,
    PresetName,
    ProviderKind,
    Ratio,
    Retention,
    RunningTurnOverflow,
    Slack,
    Text,
    ToolMode,
    TrimUpdates,
    VariableName,
    VisibleNotice,
)


class AgentSection(TypedDict, total=False):
    """[agents.NAME]: a provider, its model, and how much of the conversation it is sent.

    fallback: `provider/model` each, asked in this order when the model fails for good.
    """

    provider: Line
    model: Line
    fallback: list[Line]
    runtime_profile: Line
    system_prompt: Text


class PriceSection(TypedDict, total=False):
    """[providers.NAME.models.NAME.price]: of a million tokens, in `currency` (USD unless said otherwise).

    cached_read and cached_write are the input tokens that came out of the provider's cache or went into it;
    without a price of their own they cost what input costs.
    """

    input: Money
    output: Money
    cached_read: Money
    cached_write: Money
    currency: Line


class ModelSection(TypedDict, total=False):
    """[providers.NAME.models.NAME]: what holds for one model, over what its provider's section says.

    images: false for a model that cannot see; it is told in a line that there was a picture.
    """

    context_window: Count
    max_output_tokens: Positive
    images: Flag
    tools: ToolMode
    price: PriceSection


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
    models: dict[Line, ModelSection]


class PruningSection(TypedDict, total=False):
    """[runtime_profiles.NAME.history_pruning]. The last two keys are of older files and change nothing."""

    enabled: Flag
    max_tokens: Count
    keep_recent: Count
    collapse_tool_results: Flag


class LoopContextSection(TypedDict, total=False):
    """[runtime_profiles.NAME.loop_context]: how the tool rounds of a running turn are bounded.

    strategy: count, token-budget, summarize, an installed one, or `package.module:factory`. keep_last:
    rounds; max_tokens: of rounds alone. model: `provider/model` that writes summaries. options: for a
    strategy of one's own.
    """

    strategy: Line
    keep_last: Positive
    max_tokens: Positive
    model: Line
    options: dict[Line, Json]


class ProfileSection(TypedDict, total=False):
    """[runtime_profiles.NAME]: limits of history, of tool results and of a turn; the tools of the agent.

    summary_model: `provider/model` that writes what stands for dropped turns.
    """

    preset: PresetName
    max_history_messages: Count
    history_unit: HistoryUnit
    max_context_tokens: Count
    context_compact_ratio: Ratio
    trim_slack_ratio: Slack
    keep_tool_context_turns: Count
    max_tool_result_chars: Count
    max_tool_iterations: Positive
    max_approvals: Count
    running_turn_overflow: RunningTurnOverflow
    retention: Retention
    dropped_turns: DroppedTurns
    summary_model: Line
    loop_context: LoopContextSection
    tools: list[Line]
    history_pruning: PruningSection


class AcpSection(TypedDict, total=False):
    """[acp]: how a client is told that history was trimmed. v2: the draft of ACP v2, for those who ask."""

    history_trimmed: TrimUpdates
    visible_trim_notice: VisibleNotice
    v2: Flag


class FetchSection(TypedDict, total=False):
    """[fetch]: what `fetch_url` may reach. private_addresses: this machine and its network, too."""

    private_addresses: Flag


class McpSection(TypedDict, total=False):
    """[mcp]: what all MCP servers share. first_turn_wait: seconds that the first prompt waits for them.

    max_tools and max_tool_tokens: of all servers together, as far as the model is told of them.
    """

    first_turn_wait: Count
    max_tools: Positive
    max_tool_tokens: Positive


class McpServerSection(TypedDict, total=False):
    """[mcp_servers.NAME]: a server by its command or its address; with neither, how to use one that the
    editor names. Times in seconds.

    pass_env: variables of ours that the child gets as well. bearer_env: the variable with its token. tools:
    those that are offered.
    """

    command: Line
    args: list[Text]
    env: dict[VariableName, Text]
    pass_env: list[VariableName]
    cwd: Line
    url: Address
    type: McpType
    headers: dict[HeaderName, HeaderValue]
    bearer_env: VariableName
    enabled: Flag
    tools: list[Line]
    connect_timeout: Positive
    call_timeout: Positive


class PermissionsSection(TypedDict, total=False):
    """[permissions]: the mode that a session begins in, and rules, `tool` or `tool:pattern` each.

    The rules of all sources count together: one that denies cannot be taken back by another file.
    """

    mode: PermissionMode
    allow: list[Line]
    ask: list[Line]
    deny: list[Line]


class ConfigFile(TypedDict, total=False):
    """The whole file. redact: regular expressions, see `runtime.setup.redaction`."""

    default_agent: Line
    store: Line
    redact: list[Line]
    agents: dict[Line, AgentSection]
    providers: dict[Line, ProviderSection]
    runtime_profiles: dict[Line, ProfileSection]
    acp: AcpSection
    fetch: FetchSection
    permissions: PermissionsSection
    mcp: McpSection
    mcp_servers: dict[Line, McpServerSection]
    gateway: GatewaySection


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
    if get_origin(kind) is list:
        return list_schema(_schema(get_args(kind)[0]), strict=True)
    if get_origin(kind) is Literal:
        return literal_schema(list(get_args(kind)))
    return cast(CoreSchema, get_args(kind)[1])
