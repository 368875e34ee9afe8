"""The merged, checked tree to settings, `loop_context` included. Knows the defaults that no source states.

Pure, but for asking which trimmers are installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from acp_server.acp.client_options import AcpSettings
from acp_server.config.layers import Key, key_text, printable, subtree, table
from acp_server.config.merge import IMPLIED_AGENT, Merged, default_agent, hint, only_provider
from acp_server.config.models import all_models, chain, key_variables, model_of, pair_of, path_of
from acp_server.config.paths import answers_dir, default_store
from acp_server.config.settings import (
    AgentConfig,
    GatewaySettings,
    ModelConfig,
    PermissionSettings,
    SessionConfig,
    ToolConfig,
)
from runtime.store.common.faults import VARIABLES, is_address
from runtime.values.profiles import (
    BUILT_IN,
    BUILT_IN_CONTEXTS,
    GOAL_TOOL,
    PRESETS,
    HistoryPruning,
    LoopContext,
    Profile,
)

if TYPE_CHECKING:  # the schema is not loaded by a start without any setting
    from acp_server.config.settings import ModelConfig
    from schemas.config import LoopContextSection

IDLE = {"count": ("max_tokens", "model", "options"), "token-budget": ("keep_last", "model", "options")}
"""Keys that a strategy does not read."""


def loop_context(section: LoopContextSection | None) -> LoopContext | None:
    """The section as settings; None without one."""
    if not section:
        return None
    return LoopContext(
        section["strategy"],
        section.get("keep_last"),
        section.get("max_tokens"),
        section.get("model", ""),
        tuple(section.get("options", {}).items()),
    )


def helpers(merged: Merged, profiles: tuple[Profile, ...]) -> tuple[tuple[str, ModelConfig], ...]:
    """The models that profiles name for summaries, by the text that names them."""
    contexts = (profile.loop_context for profile in profiles)
    texts = [*(profile.summary_model for profile in profiles), *(one.model for one in contexts if one)]
    pairs = {text: pair_of(merged.tree, text) for text in texts if text}
    return tuple((text, model_of(merged, *pair)) for text, pair in pairs.items() if pair is not None)


def context_faults(merged: Merged) -> Iterator[str]:
    """Strategies that are not there, and what one needs."""
    for profile in table(merged.tree, "runtime_profiles"):
        key: Key = ("runtime_profiles", profile, "loop_context")
        section = cast("LoopContextSection", table(merged.tree, *key))
        if not section:
            continue
        strategy = section.get("strategy")
        if strategy is None:
            yield merged.says(key, f"{key_text(key)} needs a strategy: {' or '.join(BUILT_IN_CONTEXTS)}")
            continue
        for word in BUILT_IN_CONTEXTS.get(strategy, ()):
            if word not in section:
                yield merged.says(key, f"{key_text(key)} needs {word} with the strategy {strategy}")
        yield from _unknown_strategy(merged, (*key, "strategy"), strategy)


def context_remarks(merged: Merged) -> Iterator[str]:
    """Keys that the strategy in force does not read; another file may have set it."""
    for profile in table(merged.tree, "runtime_profiles"):
        section = table(merged.tree, "runtime_profiles", profile, "loop_context")
        strategy = str(section.get("strategy"))
        idle = IDLE.get(strategy, ("options",) if strategy in BUILT_IN_CONTEXTS else ())
        for word in (word for word in idle if word in section):
            key = ("runtime_profiles", profile, "loop_context", word)
            yield merged.says(key, f"{key_text(key)} has no effect with the strategy {strategy}")


def _unknown_strategy(merged: Merged, key: Key, strategy: str) -> Iterator[str]:
    if strategy in BUILT_IN_CONTEXTS or ":" in strategy:
        return
    from runtime.trimming.catalog import installed

    known = (*BUILT_IN_CONTEXTS, *installed())
    if strategy not in known:
        text = f'{key_text(key)} names the strategy "{printable(strategy)}", which is not there'
        yield merged.says(key, f"{text}{hint(strategy, known)}")


if TYPE_CHECKING:  # the schema is not loaded by a start without any setting
    from runtime.mcp.settings import McpSettings
    from schemas.config import (
        AcpSection,
        AgentSection,
        FetchSection,
        PermissionsSection,
        ProfileSection,
        PruningSection,
    )
    from schemas.config_values import GatewaySection

DEFAULT_PROFILE = "default"
MEMORY = "memory"


def build(merged: Merged, env: Mapping[str, str], warnings: tuple[str, ...] = ()) -> SessionConfig:
    """Settings of the default agent. The tree must have passed `check` and `combine`."""
    agent, models = _models(merged)
    known = profiles(merged, agent.profile)
    return SessionConfig(
        agent,
        _acp(merged),
        _store(merged, env),
        warnings,
        models,
        known,
        mcp=_mcp(merged),
        tools=_tools(merged),
        permissions=_permissions(merged, env),
        helpers=helpers(merged, known),
        redact=tuple(cast("list[str]", merged.tree.get("redact", []))),
        gateway=_gateway(merged),
    )


def chosen_names(merged: Merged) -> tuple[str, str | None, str]:
    """The agent, its provider (None: there is none) and its runtime profile."""
    agent = default_agent(merged.tree) or IMPLIED_AGENT
    section = cast("AgentSection", table(merged.tree, "agents", agent))
    provider = section.get("provider") or only_provider(merged.tree)
    return agent, provider, section.get("runtime_profile", DEFAULT_PROFILE)


def profile(merged: Merged, name: str) -> Profile:
    """The named profile: its section over its preset, a preset by its own name, else the defaults; the
    built-in one where nobody wrote it.
    """
    section = cast("ProfileSection", table(merged.tree, "runtime_profiles", name))
    preset = section.get("preset", name if name in PRESETS else "")
    base = PRESETS[preset or "balanced"] if preset or is_written(merged, name) else BUILT_IN
    return replace(
        base,
        name=name,
        max_history_messages=section.get("max_history_messages", base.max_history_messages),
        history_unit=section.get("history_unit", base.history_unit),
        max_context_tokens=section.get("max_context_tokens", base.max_context_tokens),
        context_compact_ratio=section.get("context_compact_ratio", base.context_compact_ratio),
        trim_slack_ratio=section.get("trim_slack_ratio", base.trim_slack_ratio),
        keep_tool_context_turns=section.get("keep_tool_context_turns", base.keep_tool_context_turns),
        max_tool_result_chars=section.get("max_tool_result_chars", base.max_tool_result_chars),
        max_tool_iterations=section.get("max_tool_iterations", base.max_tool_iterations),
        max_approvals=section.get("max_approvals", base.max_approvals),
        running_turn_overflow=section.get("running_turn_overflow", base.running_turn_overflow),
        retention=section.get("retention", base.retention),
        dropped_turns=section.get("dropped_turns", base.dropped_turns),
        summary_model=section.get("summary_model", base.summary_model),
        loop_context=loop_context(section.get("loop_context")),
        tools=_tool_names(section, base),
        history_pruning=_pruning(section.get("history_pruning", {}), base.history_pruning),
    )


def is_written(merged: Merged, name: str) -> bool:
    """Whether any source has a section for the profile, be it empty."""
    return subtree(merged.tree, ("runtime_profiles", name)) is not None


def _tool_names(section: ProfileSection, base: Profile) -> tuple[str, ...]:
    """The tools that are named, else the base's; where goals decide what is kept, the model may set one."""
    names = tuple(section.get("tools", base.tools))
    goals = section.get("retention") == "head-tail" and "tools" not in section
    return (*names, GOAL_TOOL) if goals else names


def profiles(merged: Merged, first: Profile) -> tuple[Profile, ...]:
    """Every profile and preset by name, `first` in front."""
    names = dict.fromkeys((first.name, *table(merged.tree, "runtime_profiles"), *PRESETS))
    return tuple(profile(merged, name) for name in names)


def _models(merged: Merged) -> tuple[AgentConfig, tuple[ModelConfig, ...]]:
    """The default agent, and all models that it may be switched to."""
    name, provider, profile_name = chosen_names(merged)
    section = cast("AgentSection", table(merged.tree, "agents", name))
    agent = AgentConfig(name, None, None, profile(merged, profile_name), section.get("system_prompt"))
    if not provider:
        return agent, ()
    first = model_of(merged, provider, section.get("model", ""))
    return agent.using(first)._replace(fallback=chain(merged, name, first)), all_models(merged, first)


def _pruning(section: PruningSection, base: HistoryPruning) -> HistoryPruning:
    # The keys of older files stay behind: they were already reported, with the line they stand on.
    return replace(
        base,
        enabled=section.get("enabled", base.enabled),
        max_tokens=section.get("max_tokens", base.max_tokens),
    )


def _mcp(merged: Merged) -> McpSettings | None:
    if "mcp" not in merged.tree and "mcp_servers" not in merged.tree:
        return None
    from acp_server.config.mcp import mcp_settings

    return mcp_settings(merged)


def _tools(merged: Merged) -> ToolConfig:
    section = cast("FetchSection", table(merged.tree, "fetch"))
    secret = key_variables(merged.tree)
    if is_address(str(merged.tree.get("store"))):
        secret |= set(VARIABLES)
    return ToolConfig(section.get("private_addresses", False), tuple(sorted(secret)))


def _permissions(merged: Merged, env: Mapping[str, str]) -> PermissionSettings:
    section = cast("PermissionsSection", table(merged.tree, "permissions"))
    return PermissionSettings(
        section.get("mode", "ask"),
        tuple(section.get("allow", ())),
        tuple(section.get("ask", ())),
        tuple(section.get("deny", ())),
        answers_dir(env),
    )


def _gateway(merged: Merged) -> GatewaySettings:
    section = cast("GatewaySection", table(merged.tree, "gateway"))
    base = GatewaySettings()
    cert, key = section.get("tls_cert"), section.get("tls_key")
    return GatewaySettings(
        host=section.get("host", base.host),
        port=section.get("port", base.port),
        tls_cert=path_of(merged, ("gateway", "tls_cert"), cert) if cert else "",
        tls_key=path_of(merged, ("gateway", "tls_key"), key) if key else "",
        allowed_hosts=tuple(section.get("allowed_hosts", base.allowed_hosts)),
        allowed_origins=tuple(section.get("allowed_origins", base.allowed_origins)),
        max_connections=section.get("max_connections", base.max_connections),
        max_message_bytes=section.get("max_message_bytes", base.max_message_bytes),
        requests_per_second=section.get("requests_per_second", base.requests_per_second),
        detached_turn_seconds=section.get("detached_turn_seconds", base.detached_turn_seconds),
    )


def _acp(merged: Merged) -> AcpSettings:
    section = cast("AcpSection", table(merged.tree, "acp"))
    base = AcpSettings()
    return AcpSettings(
        history_trimmed=section.get("history_trimmed", base.history_trimmed),
        visible_trim_notice=section.get("visible_trim_notice", base.visible_trim_notice),
        v2=section.get("v2", base.v2),
    )


def _store(merged: Merged, env: Mapping[str, str]) -> str:
    store = merged.tree.get("store")
    if not isinstance(store, str):
        return default_store(env)
    return store if store == MEMORY or is_address(store) else path_of(merged, ("store",), store)
