"""Every setting in force, with its value and where it is from, as text or JSON. Pure; prints nothing."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from textwrap import wrap
from typing import NamedTuple, cast

from acp_server.config.build import chosen_names, is_written, profile
from acp_server.config.layers import DEFAULT, Key, Layer, Origin, key_text, leaves, printable, subtree, table
from acp_server.config.load import View
from acp_server.config.merge import Merged
from acp_server.config.models import key_variable
from acp_server.config.paths import short
from acp_server.config.secrets import showable
from runtime.values.profiles import DEFAULT_CONTEXT_TOKENS, DEFAULT_MAX_TURNS, PRESETS, Profile
from schemas.config import ProviderSection

ONLY_PROVIDER = Origin("derived", "the only one")
BUILT_IN_PROFILE = Origin("default", "built-in profile")
"""Of a profile that nobody wrote: it trims more at once than one that somebody did."""
PRUNING_KEYS = ("enabled", "max_tokens")
RULES = ("allow", "ask", "deny")


class Setting(NamedTuple):
    """value is fit to be shown; None: unset. note: one more fact, '' for none."""

    key: Key
    value: object
    origin: Origin
    note: str = ""


def settings_in_force(view: View, env: Mapping[str, str]) -> list[Setting]:
    """In the order of a file: what is global first, then agents, providers, profiles, acp, MCP."""
    merged = view.merged
    named = [*_agents(merged), *_providers(merged, env), *_profiles(merged)]
    rest = [*_acp(view), *_permissions(view), _fetch(view), *_mcp(merged), *_gateway(merged)]
    return [*_global(view), *named, *rest]


def _global(view: View) -> Iterator[Setting]:
    yield Setting(("default_agent",), view.config.agent.name, view.merged.origin(("default_agent",)))
    store = showable(("store",), view.config.store)
    yield Setting(("store",), store, view.merged.origin(("store",)))
    yield Setting(("redact",), list(view.config.redact), view.merged.origin(("redact",)))


def _agents(merged: Merged) -> Iterator[Setting]:
    agent, provider, profile_name = chosen_names(merged)
    chosen = {"provider": provider, "runtime_profile": profile_name}
    for name in {**table(merged.tree, "agents"), agent: None}:
        implied = chosen if name == agent else {}
        for word, value in {**implied, **table(merged.tree, "agents", name)}.items():
            key = ("agents", name, word)
            only = word == "provider" and value is not None and key not in merged.owners
            yield Setting(key, value, ONLY_PROVIDER if only else merged.origin(key))


def _providers(merged: Merged, env: Mapping[str, str]) -> Iterator[Setting]:
    for name in table(merged.tree, "providers"):
        section = table(merged.tree, "providers", name)
        for key, value in leaves(section, ("providers", name)):
            note = _key_note(str(value), env) if key[2:] == ("api_key_env",) else ""
            yield Setting(key, showable(key, value), merged.origin(key), note)
        variable = key_variable(cast(ProviderSection, section))
        if variable and "api_key_env" not in section:
            key = ("providers", name, "api_key_env")
            yield Setting(key, variable, DEFAULT, _key_note(variable, env))


def _key_note(variable: str, env: Mapping[str, str]) -> str:
    # Loaded here alone: a session needs no listing.
    from acp_server.config.secrets import is_stored

    if env.get(variable):
        return "is set"
    return "stored" if is_stored(env, variable) else "not set"


def _profiles(merged: Merged) -> Iterator[Setting]:
    _, _, chosen = chosen_names(merged)
    for name in {**table(merged.tree, "runtime_profiles"), chosen: None}:
        values = _in_force(profile(merged, name))
        preset = subtree(merged.tree, ("runtime_profiles", name, "preset"))
        base = preset or (name if name in PRESETS else None)
        written = DEFAULT if is_written(merged, name) else BUILT_IN_PROFILE
        unset = Origin("preset", f"preset {base}") if base else written
        if base:
            key: Key = ("runtime_profiles", name, "preset")
            yield Setting(key, base, merged.origin(key) if preset else Origin("derived", "its name"))
        for path, value in values.items():
            key = ("runtime_profiles", name, *path)
            yield Setting(key, value, merged.origin(key) if key in merged.owners else unset)


def _in_force(found: Profile) -> dict[Key, object]:
    found = replace(found, max_history_messages=_turns(found), max_context_tokens=_tokens(found))
    plain: dict[Key, object] = {
        (entry.name,): getattr(found, entry.name)
        for entry in fields(found)
        if entry.name not in ("name", "history_pruning", "loop_context", "summary_model")
    }
    if found.summary_model:
        plain[("summary_model",)] = found.summary_model
    plain |= {("history_pruning", word): getattr(found.history_pruning, word) for word in PRUNING_KEYS}
    return plain | _context(found)


def _context(found: Profile) -> dict[Key, object]:
    if found.loop_context is None:
        return {}
    context = asdict(found.loop_context) | {"options": dict(found.loop_context.options)}
    return {("loop_context", word): value for word, value in context.items() if value}


def _turns(found: Profile) -> int:
    if found.max_history_messages is not None:
        return found.max_history_messages
    entries = max(DEFAULT_MAX_TURNS, 2 * found.max_tool_iterations + 2)
    return DEFAULT_MAX_TURNS if found.history_unit == "turns" else entries


def _tokens(found: Profile) -> int | None:
    if found.max_context_tokens is None and found.context_compact_ratio is None:
        return DEFAULT_CONTEXT_TOKENS
    return found.max_context_tokens


def _acp(view: View) -> Iterator[Setting]:
    for word, value in view.config.acp._asdict().items():
        key = ("acp", word)
        yield Setting(key, value, view.merged.origin(key))


def _permissions(view: View) -> Iterator[Setting]:
    found = view.config.permissions
    for word, value in (("mode", found.mode), *((word, list(getattr(found, word))) for word in RULES)):
        key = ("permissions", word)
        yield Setting(key, list(value) if isinstance(value, tuple) else value, view.merged.origin(key))


def _fetch(view: View) -> Setting:
    key = ("fetch", "private_addresses")
    return Setting(key, view.config.tools.private_addresses, view.merged.origin(key))


def _gateway(merged: Merged) -> Iterator[Setting]:
    for key, value in leaves(table(merged.tree, "gateway"), ("gateway",)):
        yield Setting(key, showable(key, value), merged.origin(key))


def _mcp(merged: Merged) -> Iterator[Setting]:
    for word in ("mcp", "mcp_servers"):
        for key, value in leaves(table(merged.tree, word), (word,)):
            yield Setting(key, showable(key, value), merged.origin(key))


WIDTH = 80
COLUMN = 56
FILES: Mapping[str, str] = {"user": "user", "project": "project", "file": "--config"}


def as_text(view: View, settings: Sequence[Setting], untrusted: bool) -> str:
    """A TOML-like listing; each value is followed by its place, files by the short name in the head."""
    lines = [*_head(view, untrusted), *_body(settings)]
    for text in view.config.warnings:
        lines += ["", *wrap(f"warning: {text}", WIDTH, break_long_words=False, break_on_hyphens=False)]
    return "\n".join(lines)


def as_json(view: View, settings: Sequence[Setting], untrusted: bool) -> str:
    """{"sources": [{source, name, trusted?}], "settings": [{key, value, source, …}], "warnings": [text]}."""
    document = {
        "sources": [_source(layer, untrusted) for layer in _files(view)],
        "settings": [_entry(setting) for setting in settings],
        "warnings": list(view.config.warnings),
    }
    return json.dumps(document, indent=2)


def _files(view: View) -> list[Layer]:
    return [layer for layer in view.layers if layer.source in FILES]


def _source(layer: Layer, untrusted: bool) -> dict[str, object]:
    trusted = {"trusted": not untrusted} if layer.source == "project" else {}
    return {"source": layer.source, "name": layer.name, **trusted}


def _entry(setting: Setting) -> dict[str, object]:
    origin = setting.origin
    place = {"name": origin.name} | ({"line": origin.line} if origin.line else {}) if origin.name else {}
    note = {"is_set": setting.note != "not set"} if setting.note else {}
    return {"key": key_text(setting.key), "value": setting.value, "source": origin.source, **place, **note}


def _head(view: View, untrusted: bool) -> Iterator[str]:
    files = _files(view)
    yield "# Settings in force. Later sources win: files, variables, flags."
    if not files:
        yield "# No settings file was found; `wholeturn config path` tells where one is looked for."
    for layer in files:
        note = " (not trusted)" if untrusted and layer.source == "project" else ""
        yield f"#   {FILES[layer.source]:<9}{short(layer.name)}{note}"


def _body(settings: Sequence[Setting]) -> Iterator[str]:
    table: tuple[str, ...] = ()
    for setting in settings:
        around = setting.key[:-1]
        if around != table or setting is settings[0]:
            table = around
            yield f"\n[{key_text(around)}]" if around else ""
        yield from _line(setting)


def _line(setting: Setting) -> Iterator[str]:
    left = f"{key_text(setting.key[-1:])} = {_value(setting.value)}"
    place = f"# {_place(setting)}"
    if len(left) <= COLUMN - 2 or len(left) + 2 + len(place) <= WIDTH:
        yield f"{left:<{COLUMN - 2}}  {place}" if len(place) <= WIDTH - COLUMN else f"{left}  {place}"
        return
    if isinstance(setting.value, list | tuple):
        yield f"{key_text(setting.key[-1:])} = ["
        yield from wrap(
            _value(setting.value)[1:-1],
            WIDTH,
            initial_indent="  ",
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        left = "]"
    yield left  # a long value is shown whole all the same
    yield f"    {place}"


def _place(setting: Setting) -> str:
    origin = setting.origin
    shown = f"{FILES[origin.source]}:{origin.line}" if origin.source in FILES else str(origin)
    return f"{shown}, {setting.note}" if setting.note else shown


def _value(value: object) -> str:
    return "unset" if value is None else printable(json.dumps(value, ensure_ascii=False), 400)
