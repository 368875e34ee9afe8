"""File layers, variables and flags to one checked tree, and what is wrong between its keys. Reads no file."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice

from acp_server.config import check
from acp_server.config.build import context_faults, context_remarks
from acp_server.config.environment import KINDS, text_layers, unknown_variables
from acp_server.config.layers import Key, Layer, Tree, key_text, leaves, printable, subtree, table
from acp_server.config.mcp import mcp_faults
from acp_server.config.merge import IMPLIED_AGENT, Merged, default_agent, hint, merge
from acp_server.config.models import pair_of
from acp_server.config.paths import here
from acp_server.config.settings import Options, given_variables
from runtime.store.common.faults import is_address
from runtime.values.errors import ConfigError
from runtime.values.profiles import GOAL_TOOL, PRESETS, TOOLS

HTTP_KINDS = ("openai", "openai_responses", "anthropic", "ollama")
OF_KIND: Mapping[str, tuple[str, ...]] = {
    "base_url": HTTP_KINDS,
    "api_key_env": HTTP_KINDS,
    "headers": HTTP_KINDS,
    "script": ("scripted",),
}
"""Keys of a provider that only some kinds read."""


def reference_faults(merged: Merged, limit: int) -> list[str]:
    """What keeps the merged settings from being used, the first `limit` of it."""
    looks = (_lost_names, _provider_faults, _unsettled_agent, _store_fault, mcp_faults, context_faults)
    return list(islice(chain.from_iterable(look(merged) for look in looks), limit))


def reference_remarks(merged: Merged, limit: int) -> list[str]:
    """What is accepted and does not do what it says, the first `limit` of it."""
    return list(islice(chain(_remarks(merged), context_remarks(merged)), limit))


def _remarks(merged: Merged) -> Iterator[str]:
    for key, value in leaves(merged.tree):
        match key:
            case ("runtime_profiles", _, "context_compact_ratio") if not _counts(value):
                text = f"{key_text(key)} = {value} counts as unset: it must be above 0 and at most 1"
                yield merged.says(key, text)
            case ("runtime_profiles", profile, "summary_model") if not _summarizes(merged, profile):
                text = f'{key_text(key)} has no effect without dropped_turns = "summarize"'
                yield merged.says(key, text)
            case ("runtime_profiles", _, "history_pruning", "keep_recent" | "collapse_tool_results"):
                text = f"{key_text(key)} has no effect any more; use keep_tool_context_turns"
                yield merged.says(key, text)
            case _:
                pass


def _summarizes(merged: Merged, profile: str) -> bool:
    return table(merged.tree, "runtime_profiles", profile).get("dropped_turns") == "summarize"


def _counts(ratio: object) -> bool:
    return isinstance(ratio, int | float) and 0 < ratio <= 1


def _lost_names(merged: Merged) -> Iterator[str]:
    tree = merged.tree
    profiles = (*table(tree, "runtime_profiles"), *PRESETS)
    for agent in table(tree, "agents"):
        yield from _lost(merged, ("agents", agent, "provider"), "provider", table(tree, "providers"))
        yield from _lost(merged, ("agents", agent, "runtime_profile"), "runtime profile", profiles)
        yield from _lost_models(merged, ("agents", agent, "fallback"))
    for profile in table(tree, "runtime_profiles"):
        yield from _lost_tools(merged, ("runtime_profiles", profile, "tools"))
        for words in (("summary_model",), ("loop_context", "model")):
            yield from _lost_models(merged, ("runtime_profiles", profile, *words))
    yield from _lost(merged, ("default_agent",), "agent", table(tree, "agents") or (IMPLIED_AGENT,))


def _lost(merged: Merged, key: Key, what: str, known: Tree | tuple[str, ...]) -> Iterator[str]:
    named = subtree(merged.tree, key)
    if isinstance(named, str) and named not in known:
        text = (
            f'{key_text(key)} names the {what} "{printable(named)}", which is not there{hint(named, known)}'
        )
        yield merged.says(key, text)


def _lost_tools(merged: Merged, key: Key) -> Iterator[str]:
    entries = subtree(merged.tree, key)
    for name in entries if isinstance(entries, list) else ():
        if isinstance(name, str) and name not in (*TOOLS, GOAL_TOOL):
            text = f'{key_text(key)} names the tool "{printable(name)}", which is not there'
            yield merged.says(key, f"{text}{hint(name, TOOLS)}")


def _lost_models(merged: Merged, key: Key) -> Iterator[str]:
    """Models whose provider is not there, of a chain or alone. Any may be named of one that is."""
    entries = subtree(merged.tree, key)
    entries = [entries] if isinstance(entries, str) else entries
    named = [entry for entry in entries if isinstance(entry, str)] if isinstance(entries, list) else []
    for entry in named:
        if pair_of(merged.tree, entry) is None:
            known = {"/".join(filter(None, pair)) for pair in _models(merged.tree)}
            text = f'{key_text(key)} names "{printable(entry)}", which is no model of a known provider'
            yield merged.says(key, f"{text}{hint(entry, known)}")


def _models(tree: Tree) -> Iterator[tuple[str, ...]]:
    for provider in table(tree, "providers"):
        yield provider, str(table(tree, "providers", provider).get("model") or "")
        yield from ((provider, model) for model in table(tree, "providers", provider, "models"))


def _provider_faults(merged: Merged) -> Iterator[str]:
    for name in table(merged.tree, "providers"):
        key: Key = ("providers", name)
        section = table(merged.tree, *key)
        kind = section.get("kind")
        if kind is None:
            yield merged.says(key, f"{key_text(key)} needs a kind: {' or '.join(KINDS)}")
        if kind == "scripted" and "script" not in section:
            yield merged.says(key, f"{key_text(key)} needs a script: the file that it plays")
        if kind in KINDS:
            yield from _idle_keys(merged, key, str(kind))


def _idle_keys(merged: Merged, provider: Key, kind: str) -> Iterator[str]:
    for word in table(merged.tree, *provider):
        if kind not in OF_KIND.get(word, KINDS):
            key = (*provider, word)
            text = f"{key_text(key)} has no effect with kind {kind}; it is for {', '.join(OF_KIND[word])}"
            yield merged.says(key, text)


def _unsettled_agent(merged: Merged) -> Iterator[str]:
    agents, providers = table(merged.tree, "agents"), table(merged.tree, "providers")
    agent = default_agent(merged.tree)
    if agent is None:
        yield f"default_agent is not set; the agents are {_listed(agents)}"
    elif len(providers) > 1 and "provider" not in table(merged.tree, "agents", agent):
        key: Key = ("agents", agent, "provider")
        yield merged.says(key[:2], f"{key_text(key)} is not set; the providers are {_listed(providers)}")


def _store_fault(merged: Merged) -> Iterator[str]:
    store = merged.tree.get("store")
    if isinstance(store, str) and "://" in store and not is_address(store):
        text = 'store must be a file\'s path, "memory" or an address that begins with postgresql://'
        yield merged.says(("store",), text)


def _listed(names: Tree) -> str:
    return ", ".join(printable(name) for name in names)


def combine(
    options: Options, env: Mapping[str, str], files: Sequence[Layer]
) -> tuple[Merged, list[Layer], list[str]]:
    """The merged tree, all layers (weaker first), and remarks about what has no effect.

    files: weaker first. Raises ConfigError with every fault of every source, a line each.
    """
    variables = given_variables(env)
    texts = text_layers(variables, options, merge(files).tree, here())
    layers = [*files, *texts]
    merged = merge(layers)
    faults = [fault for layer in layers for fault in check.faults(layer)]
    # A value that is wrong in itself leads nowhere either: that is one fault, not two.
    told = {fault.partition(": ")[0] for fault in faults}
    lost = [
        fault for fault in reference_faults(merged, check.MOST_FAULTS) if fault.partition(": ")[0] not in told
    ]
    raise_faults([*faults, *lost])
    return merged, layers, [*unknown_variables(variables), *reference_remarks(merged, check.MOST_FAULTS)]


def raise_faults(faults: Sequence[str]) -> None:
    """Raises ConfigError for one fault or many; does nothing for none."""
    if faults:
        head = f"{len(faults)} settings cannot be used:\n" if len(faults) > 1 else ""
        raise ConfigError(head + "\n".join(faults))
