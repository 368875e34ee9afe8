"""Short names that stand for keys of the default agent and its provider: a start without a file. Pure.

`WHOLETURN_BASE_URL=http://127.0.0.1:11434/v1 WHOLETURN_MODEL=qwen3` or `--provider scripted` say no agent
and no section; this module says which keys they mean, given the settings of the weaker sources.
"""

from collections.abc import Mapping
from typing import get_args

from acp_server.config.keys import Key, Tree, subtree, table
from acp_server.config.nearest import IMPLIED_AGENT, default_agent, only_provider
from schemas.config_values import ProviderKind

OF_AGENT = {"model": "model", "profile": "runtime_profile"}
OF_PROVIDER = {
    "base_url": "openai",
    "api_key_env": "openai",
    "context_window": "openai",
    "script": "scripted",
}
"""A provider's short names, and the kind of provider that is meant when none is configured."""
OF_ALL = ("default_agent", "store")
SHORT_NAMES = ("provider", *OF_AGENT, *OF_PROVIDER, *OF_ALL, "mode")
KINDS: tuple[str, ...] = get_args(ProviderKind)


def expand(given: Mapping[str, object], tree: Tree) -> dict[Key, tuple[object, str]]:
    """Keys with their values, and the short name each is from. `tree`: everything the sources say so far."""
    agent = ("agents", str(given.get("default_agent") or default_agent(tree) or IMPLIED_AGENT))
    keys: dict[Key, tuple[object, str]] = {(name,): (given[name], name) for name in OF_ALL if name in given}
    if "mode" in given:
        keys[("permissions", "mode")] = (given["mode"], "mode")
    keys |= {(*agent, key): (given[name], name) for name, key in OF_AGENT.items() if name in given}
    cause = next((name for name in ("provider", *OF_PROVIDER) if name in given), None)
    if cause:
        provider = _provider(given, tree, agent, cause)
        keys |= _provider_keys(given, tree, agent, provider, cause)
    return keys


def _provider(given: Mapping[str, object], tree: Tree, agent: Key, cause: str) -> str:
    if "provider" in given:
        return str(given["provider"])
    chosen = subtree(tree, (*agent, "provider")) or only_provider(tree)
    return str(chosen or OF_PROVIDER[cause])


def _provider_keys(
    given: Mapping[str, object], tree: Tree, agent: Key, provider: str, cause: str
) -> dict[Key, tuple[object, str]]:
    keys: dict[Key, tuple[object, str]] = {(*agent, "provider"): (provider, cause)}
    if provider in KINDS and "kind" not in table(tree, "providers", provider):
        keys[("providers", provider, "kind")] = (provider, cause)
    for name in OF_PROVIDER:
        if name in given:
            keys[("providers", provider, name)] = (given[name], name)
    return keys
