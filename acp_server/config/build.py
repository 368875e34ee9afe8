"""The merged, checked tree to settings. Pure; knows the defaults that no source states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from acp_server.config.keys import Key, table
from acp_server.config.merge import Merged
from acp_server.config.nearest import IMPLIED_AGENT, default_agent, only_provider
from acp_server.config.paths import absolute, default_store
from acp_server.config.settings import AcpSettings, AgentConfig, SessionConfig
from runtime.profiles import PRESETS, HistoryPruning, Profile, Route, route_window

if TYPE_CHECKING:  # the schema is not loaded by a start without any setting
    from runtime.providers.settings import ProviderSettings
    from schemas.config import AcpSection, AgentSection, ProfileSection, ProviderSection, PruningSection

_OPENAI = ("OPENAI_API_KEY", "https://api.openai.com/")
KEY_VARIABLES: Mapping[str, tuple[str, str]] = {
    "openai": _OPENAI,
    "openai_responses": _OPENAI,
    "anthropic": ("ANTHROPIC_API_KEY", "https://api.anthropic.com/"),
}
"""Kind -> the variable that its maker's key stands in, and the maker's own address."""
DEFAULT_PROFILE = "default"
MEMORY = "memory"


def build(merged: Merged, env: Mapping[str, str], warnings: tuple[str, ...] = ()) -> SessionConfig:
    """Settings of the default agent. The tree must have passed `check` and `references`."""
    return SessionConfig(_agent(merged), _acp(merged), _store(merged, env), warnings)


def chosen_names(merged: Merged) -> tuple[str, str | None, str]:
    """The agent, its provider (None: there is none) and its runtime profile."""
    agent = default_agent(merged.tree) or IMPLIED_AGENT
    section = cast("AgentSection", table(merged.tree, "agents", agent))
    provider = section.get("provider") or only_provider(merged.tree)
    return agent, provider, section.get("runtime_profile", DEFAULT_PROFILE)


def profile(merged: Merged, name: str) -> Profile:
    """The named profile: its section over its preset, a preset by its own name, else the defaults."""
    section = cast("ProfileSection", table(merged.tree, "runtime_profiles", name))
    base = PRESETS[section.get("preset", name if name in PRESETS else "balanced")]
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
        running_turn_overflow=section.get("running_turn_overflow", base.running_turn_overflow),
        history_pruning=_pruning(section.get("history_pruning", {}), base.history_pruning),
    )


def key_variable(section: ProviderSection) -> str:
    """The variable that holds the key. A maker's own is taken for the maker's own address and no other."""
    implied, address = KEY_VARIABLES.get(section.get("kind", ""), ("", ""))
    at_home = f"{section.get('base_url', address).rstrip('/')}/".startswith(address)
    return section.get("api_key_env", implied if at_home else "")


def _agent(merged: Merged) -> AgentConfig:
    name, provider_name, profile_name = chosen_names(merged)
    section = cast("AgentSection", table(merged.tree, "agents", name))
    provider = _provider(merged, provider_name) if provider_name else None
    model = cast("ProviderSection", table(merged.tree, "providers", provider_name or ""))
    return AgentConfig(
        name=name,
        provider=provider,
        route=_route(merged, provider, section.get("model", "")) if provider else None,
        profile=profile(merged, profile_name),
        system_prompt=section.get("system_prompt"),
        prompt_tools=model.get("tools") == "prompt",
        token_counter=model.get("token_counter", "heuristic"),
    )


def _provider(merged: Merged, name: str) -> ProviderSettings:
    key: Key = ("providers", name)
    section = cast("ProviderSection", table(merged.tree, *key))
    # Only a start with a provider needs it, and then the provider needs it anyway.
    from runtime.providers.settings import ProviderSettings

    options = dict(section.get("options", {}))
    if "script" in section:
        options["script"] = _path(merged, (*key, "script"), section["script"])
    return ProviderSettings(
        name=name,
        kind=section["kind"],
        base_url=section.get("base_url", ""),
        api_key_env=key_variable(section),
        model=section.get("model", ""),
        context_window=section.get("context_window", 0),
        max_output_tokens=section.get("max_output_tokens"),
        headers=section.get("headers", {}),
        options=options,
        source=merged.place(key),
    )


def _route(merged: Merged, provider: ProviderSettings, model: str) -> Route:
    section = cast("ProviderSection", table(merged.tree, "providers", provider.name))
    return Route(
        provider=provider.name,
        model=model or provider.model,
        context_window=route_window(provider.model, model, provider.context_window or None),
        max_output_tokens=provider.max_output_tokens,
        output_counted_apart=section.get("output_counted_apart", False),
    )


def _pruning(section: PruningSection, base: HistoryPruning) -> HistoryPruning:
    # The keys of older files stay behind: they were already reported, with the line they stand on.
    return replace(
        base,
        enabled=section.get("enabled", base.enabled),
        max_tokens=section.get("max_tokens", base.max_tokens),
    )


def _acp(merged: Merged) -> AcpSettings:
    section = cast("AcpSection", table(merged.tree, "acp"))
    base = AcpSettings()
    return AcpSettings(
        history_trimmed=section.get("history_trimmed", base.history_trimmed),
        visible_trim_notice=section.get("visible_trim_notice", base.visible_trim_notice),
    )


def _store(merged: Merged, env: Mapping[str, str]) -> str:
    store = merged.tree.get("store")
    if not isinstance(store, str):
        return default_store(env)
    return MEMORY if store == MEMORY else _path(merged, ("store",), store)


def _path(merged: Merged, key: Key, path: str) -> str:
    owner = merged.owner(key)
    return absolute(path, owner.folder if owner else ".")
