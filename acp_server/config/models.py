"""The models that the merged tree speaks of: one with all that is known of it, a chain of them, all. Pure.

A window belongs to its model: one that no section states for exactly this model is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, cast

from acp_server.config.layers import Key, Tree, table
from acp_server.config.merge import Merged, only_provider
from acp_server.config.paths import absolute
from acp_server.config.settings import ModelConfig
from runtime.values.profiles import Route, route_window

if TYPE_CHECKING:  # the schema is not loaded by a start without any setting
    from runtime.providers.settings import ProviderSettings
    from runtime.values.model import Price
    from schemas.config import AgentSection, ModelSection, ProviderSection

_OPENAI = ("OPENAI_API_KEY", "https://api.openai.com/")
KEY_VARIABLES: Mapping[str, tuple[str, str]] = {
    "openai": _OPENAI,
    "openai_responses": _OPENAI,
    "anthropic": ("ANTHROPIC_API_KEY", "https://api.anthropic.com/"),
}
"""Kind -> the variable that its maker's key stands in, and the maker's own address."""

SIGHTLESS_KINDS = ("local",)
"""Kinds whose models read text alone, unless a model's own section says otherwise."""

Pair = tuple[str, str]
"""A provider's name and a model's, '' for the one that the provider has when none is named."""


def key_variable(section: ProviderSection) -> str:
    """The variable that holds the key. A maker's own is taken for the maker's own address and no other."""
    implied, address = KEY_VARIABLES.get(section.get("kind", ""), ("", ""))
    at_home = f"{section.get('base_url', address).rstrip('/')}/".startswith(address)
    return section.get("api_key_env", implied if at_home else "")


def key_variables(tree: Tree) -> set[str]:
    """Every variable that a key of ours may stand in: as the settings name them, and the makers' own."""
    providers = (cast("ProviderSection", table(tree, "providers", name)) for name in table(tree, "providers"))
    servers = (table(tree, "mcp_servers", name).get("bearer_env") for name in table(tree, "mcp_servers"))
    named = {*map(key_variable, providers), *(str(name) for name in servers if name)}
    return (named | {variable for variable, _ in KEY_VARIABLES.values()}) - {""}


def pair_of(tree: Tree, text: str) -> Pair | None:
    """`provider/model`, or a provider alone, as its two names; None when there is no such provider.

    Both names may hold slashes: the longest name of a provider that fits is meant.
    """
    fitting = [name for name in table(tree, "providers") if text == name or text.startswith(f"{name}/")]
    if not fitting or text.endswith("/"):
        return None
    provider = max(fitting, key=len)
    return provider, text[len(provider) + 1 :]


def model_of(merged: Merged, provider: str, model: str = "") -> ModelConfig:
    """A model of a provider that is there; without a name the provider's own."""
    section = cast("ProviderSection", table(merged.tree, "providers", provider))
    named = model or default_model(section)
    own = cast("ModelSection", table(merged.tree, "providers", provider, "models", named))
    window = route_window(section.get("model"), named, section.get("context_window"))
    route = Route(
        provider=provider,
        model=named,
        context_window=own.get("context_window", window) or _started_with(section),
        max_output_tokens=own.get("max_output_tokens", section.get("max_output_tokens")),
        output_counted_apart=section.get("output_counted_apart", False),
    )
    return ModelConfig(
        provider=_settings(merged, route),
        route=route,
        prompt_tools=own.get("tools", section.get("tools")) == "prompt",
        token_counter=section.get("token_counter", "heuristic"),
        images=own.get("images", section.get("kind") not in SIGHTLESS_KINDS),
        price=_price(own),
    )


def _started_with(section: ProviderSection) -> int | None:
    """The window that a model in this process is started with, when none is stated; None for other kinds."""
    if section.get("kind") != "local":
        return None
    from runtime.providers.settings import LOCAL_WINDOW

    n_ctx = section.get("options", {}).get("n_ctx")
    return n_ctx if isinstance(n_ctx, int) else LOCAL_WINDOW


def default_model(section: ProviderSection) -> str:
    """The model that is meant when a provider is named alone; '' when its section names none."""
    return section.get("model") or next(iter(section.get("models", {})), "")


def chain(merged: Merged, agent: str, first: ModelConfig) -> tuple[ModelConfig, ...]:
    """The agent's alternatives to its first model, each once."""
    section = cast("AgentSection", table(merged.tree, "agents", agent))
    pairs = (pair_of(merged.tree, text) for text in section.get("fallback", ()))
    found = _once(model_of(merged, *pair) for pair in pairs if pair is not None)
    return tuple(model for model in found if model.route.id != first.route.id)


def all_models(merged: Merged, first: ModelConfig) -> tuple[ModelConfig, ...]:
    """Every model that the settings name, in their order, `first` in front."""
    named = (model_of(merged, *pair) for pair in named_pairs(merged.tree))
    return tuple(_once([first, *named]))


def named_pairs(tree: Tree) -> Iterator[Pair]:
    """Every provider with every model that is named for it anywhere."""
    for provider in table(tree, "providers"):
        section = cast("ProviderSection", table(tree, "providers", provider))
        yield provider, default_model(section)
        yield from ((provider, model) for model in table(tree, "providers", provider, "models"))
    for name in table(tree, "agents"):
        agent = cast("AgentSection", table(tree, "agents", name))
        chosen = agent.get("provider") or only_provider(tree)
        if chosen is not None:
            yield chosen, agent.get("model", "")
        pairs = (pair_of(tree, text) for text in agent.get("fallback", ()))
        yield from (pair for pair in pairs if pair is not None)


def _once(models: Iterator[ModelConfig] | list[ModelConfig]) -> Iterator[ModelConfig]:
    known: dict[str, ModelConfig] = {}
    for model in models:
        known.setdefault(model.route.id, model)
    return iter(known.values())


def _price(section: ModelSection) -> Price | None:
    if "price" not in section:
        return None
    # Few have prices, and every session waits for this module.
    from runtime.values.model import Price

    return Price(**section["price"])


def _settings(merged: Merged, route: Route) -> ProviderSettings:
    key: Key = ("providers", route.provider)
    section = cast("ProviderSection", table(merged.tree, *key))
    # Only a start with a provider needs it, and then the provider needs it anyway.
    from runtime.providers.settings import ProviderSettings

    options = dict(section.get("options", {}))
    if "script" in section:
        options["script"] = path_of(merged, (*key, "script"), section["script"])
    return ProviderSettings(
        name=route.provider,
        kind=section["kind"],
        base_url=section.get("base_url", ""),
        api_key_env=key_variable(section),
        model=route.model,
        context_window=route.context_window or 0,
        max_output_tokens=route.max_output_tokens,
        headers=section.get("headers", {}),
        options=options,
        source=merged.place(key),
    )


def path_of(merged: Merged, key: Key, path: str) -> str:
    """The path at a key, relative ones from the folder of the file that set it."""
    owner = merged.owner(key)
    return absolute(path, owner.folder if owner else ".")
