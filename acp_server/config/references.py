"""What is wrong between keys: names that lead nowhere, what is missing, what has no effect. Pure."""

from collections.abc import Iterator, Mapping
from itertools import chain, islice

from acp_server.config.keys import Key, Tree, key_text, leaves, printable, subtree, table
from acp_server.config.merge import Merged
from acp_server.config.nearest import IMPLIED_AGENT, default_agent, hint
from acp_server.config.shorts import KINDS
from runtime.profiles import PRESETS

HTTP_KINDS = ("openai", "openai_responses", "anthropic")
OF_KIND: Mapping[str, tuple[str, ...]] = {
    "base_url": HTTP_KINDS,
    "api_key_env": HTTP_KINDS,
    "headers": HTTP_KINDS,
    "script": ("scripted",),
}
"""Keys of a provider that only some kinds read."""


def faults(merged: Merged, limit: int) -> list[str]:
    """What keeps the merged settings from being used, the first `limit` of it."""
    looks = (_lost_names, _provider_faults, _unsettled_agent, _store_fault)
    return list(islice(chain.from_iterable(look(merged) for look in looks), limit))


def remarks(merged: Merged, limit: int) -> list[str]:
    """What is accepted and does not do what it says, the first `limit` of it."""
    return list(islice(_remarks(merged), limit))


def _remarks(merged: Merged) -> Iterator[str]:
    for key, value in leaves(merged.tree):
        match key:
            case ("runtime_profiles", _, "context_compact_ratio") if not _counts(value):
                text = f"{key_text(key)} = {value} counts as unset: it must be above 0 and at most 1"
                yield merged.says(key, text)
            case ("runtime_profiles", _, "history_pruning", "keep_recent" | "collapse_tool_results"):
                text = f"{key_text(key)} has no effect any more; use keep_tool_context_turns"
                yield merged.says(key, text)
            case _:
                pass


def _counts(ratio: object) -> bool:
    return isinstance(ratio, int | float) and 0 < ratio <= 1


def _lost_names(merged: Merged) -> Iterator[str]:
    tree = merged.tree
    profiles = (*table(tree, "runtime_profiles"), *PRESETS)
    for agent in table(tree, "agents"):
        yield from _lost(merged, ("agents", agent, "provider"), "provider", table(tree, "providers"))
        yield from _lost(merged, ("agents", agent, "runtime_profile"), "runtime profile", profiles)
    yield from _lost(merged, ("default_agent",), "agent", table(tree, "agents") or (IMPLIED_AGENT,))


def _lost(merged: Merged, key: Key, what: str, known: Tree | tuple[str, ...]) -> Iterator[str]:
    named = subtree(merged.tree, key)
    if isinstance(named, str) and named not in known:
        text = (
            f'{key_text(key)} names the {what} "{printable(named)}", which is not there{hint(named, known)}'
        )
        yield merged.says(key, text)


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
    if isinstance(store, str) and "://" in store:
        yield merged.says(("store",), 'store must be a file\'s path or "memory", not an address')


def _listed(names: Tree) -> str:
    return ", ".join(printable(name) for name in names)
