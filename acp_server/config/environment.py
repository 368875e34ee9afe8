"""Variables and flags to layers, and the short names that stand for keys of the default agent. Reads no file.

Values stay text until the schema says otherwise. `WHOLETURN_AGENTS__DEFAULT__PROVIDER=x` sets
`agents.default.provider`: two underscores go one level down, letters are taken as small. In the names of
agents, providers and profiles a single underscore also finds a configured name with another sign in that
place (`LOCAL_VLLM` finds `local-vllm`). An empty variable counts as not set.

`WHOLETURN_BASE_URL=http://127.0.0.1:11434/v1 WHOLETURN_MODEL=qwen3` or `--provider scripted` name no agent
and no section: which keys such short names mean depends on the settings of the weaker sources.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import get_args

from acp_server.config.layers import (
    MAX_DEPTH,
    Key,
    Layer,
    Source,
    Tree,
    is_deep,
    long_key_line,
    named_origins,
    printable,
    put,
    subtree,
    table,
)
from acp_server.config.merge import IMPLIED_AGENT, default_agent, hint, only_provider
from acp_server.config.settings import NAMED, PREFIX, Options
from runtime.values.errors import ConfigError
from schemas.config import takes_text
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


_SIGNS = re.compile(r"[^a-z0-9]")

Pairs = dict[Key, tuple[object, str]]


def text_layers(variables: Mapping[str, str], options: Options, tree: Tree, folder: str) -> list[Layer]:
    """Layers of variables and flags, weaker first. tree: what files say. Raises ConfigError."""
    long: Pairs = {
        _variable_key(name, tree): (value, name) for name, value in variables.items() if "__" in name
    }
    assigned: Pairs = dict(_assignment(text) for text in options.assignments)
    # Short names are about the agent and provider that all sources together choose.
    tree = _with(_with(tree, long), assigned)
    short = _shorts_of(variables, tree)
    named = _flags_of(options, _with(tree, short))
    sources: list[tuple[Source, Pairs]] = [
        ("environment", short),
        ("environment", long),
        ("flag", named),
        ("flag", assigned),
    ]
    return [_layer(source, pairs, folder) for source, pairs in sources if pairs]


def _shorts_of(variables: Mapping[str, str], tree: Tree) -> Pairs:
    given = {name: variables[_variable(name)] for name in SHORT_NAMES if _variable(name) in variables}
    return {key: (value, _variable(name)) for key, (value, name) in expand(given, tree).items()}


def _flags_of(options: Options, tree: Tree) -> Pairs:
    given = {name: value for name, _, _ in NAMED if (value := getattr(options, name)) is not None}
    return {key: (value, f"--{name}") for key, (value, name) in expand(given, tree).items()}


def _variable(short_name: str) -> str:
    return PREFIX + short_name.upper()


def unknown_variables(variables: Mapping[str, str]) -> list[str]:
    """A sentence for each variable of ours that nothing reads: a misspelt one must not pass unseen."""
    known = [_variable(name) for name in SHORT_NAMES]
    return [
        f"{printable(name)}: is no setting and changes nothing{hint(name, known)}"
        for name in variables
        if "__" not in name and name not in known
    ]


def _layer(source: Source, pairs: Pairs, folder: str) -> Layer:
    tree: Tree = {}
    for key, (value, _) in pairs.items():
        put(tree, key, _typed(key, value))
    return Layer(
        source, source, folder, tree, named_origins(source, {key: name for key, (_, name) in pairs.items()})
    )


def _typed(key: Key, value: object) -> object:
    """The value as the file would have had it: `12000`, `true` and `{a = "b"}` unless only text fits."""
    if not isinstance(value, str) or takes_text(key):
        return value
    try:
        parsed = tomllib.loads(f"value = {value}") if long_key_line(value) is None else {}
    except (ValueError, RecursionError):
        return value
    return parsed["value"] if len(parsed) == 1 and not is_deep(parsed) else value


def _variable_key(name: str, tree: Tree) -> Key:
    parts = name[len(PREFIX) :].lower().split("__")
    if len(parts) > MAX_DEPTH:
        raise ConfigError(f"{printable(name)}: is nested too deeply")
    for depth in range(len(parts)):
        there = subtree(tree, tuple(parts[:depth])) if depth else None
        if isinstance(there, dict):
            parts[depth] = _written(parts[depth], there)
    return tuple(parts)


def _written(part: str, names: Iterable[str]) -> str:
    known = {_SIGNS.sub("_", name.lower()): name for name in names}
    return known.get(part, part)


def _assignment(text: str) -> tuple[Key, tuple[object, str]]:
    key, equals, value = text.partition("=")
    shown = printable(key, 60)
    try:
        plain = equals and "\n" not in key and long_key_line(key) is None
        tree = tomllib.loads(f"{key} = 0") if plain else {}
    except (ValueError, RecursionError):
        tree = {}
    path: list[str] = []
    here: object = tree
    while isinstance(here, dict) and len(here) == 1:
        name, here = next(iter(here.items()))
        path.append(name)
    if here != 0 or not path:
        raise ConfigError(f"--set {shown}: write it as key=value, e.g. agents.default.model=qwen3")
    return tuple(path), (value.strip(), f"--set {shown.strip()}")


def _with(tree: Tree, pairs: Pairs) -> Tree:
    """A copy of the tables of `tree` with the pairs set."""
    copy = _copied(tree)
    for key, (value, _) in pairs.items():
        put(copy, key, value)
    return copy


def _copied(tree: Tree) -> Tree:
    return {name: _copied(value) if isinstance(value, dict) else value for name, value in tree.items()}
