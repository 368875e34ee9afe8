"""A layer against the schema, its rules and patterns too: every fault as one plain sentence with its place.

Knows no other layer.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time
from typing import cast, get_args

from pydantic_core import ErrorDetails, ValidationError

from acp_server.config.layers import Key, Layer, key_text, printable, subtree, table
from acp_server.config.merge import hint, nearest
from runtime.permission.patterns import RuleError
from runtime.permission.rules import Rule, parse_allow, parse_rule
from runtime.values.profiles import TOOLS
from schemas.config import (
    AcpSection,
    AgentSection,
    ConfigFile,
    FetchSection,
    McpSection,
    McpServerSection,
    ModelSection,
    PermissionsSection,
    PriceSection,
    ProfileSection,
    ProviderSection,
    PruningSection,
    keys_of,
    kind_at,
    validate,
)
from schemas.config_values import GatewaySection

SECTION = "permissions"
CHECKS = {"allow": parse_allow, "ask": parse_rule, "deny": parse_rule}
MCP_PREFIX = "mcp__"
"""Tools of servers are known only when a session runs."""
PLAIN_TOOLS = ("update_plan", "exit_plan_mode")
"""Tools whose calls are all alike."""


def rule_faults(layer: Layer) -> Iterator[str]:
    """What keeps a rule from being used, each with the place of its list. The layer must fit the schema."""
    for word, check in CHECKS.items():
        key: Key = (SECTION, word)
        for text in cast("list[str]", table(layer.tree, SECTION).get(word, [])):
            try:
                complaint = _unknown_tool(check(text))
            except RuleError as error:
                complaint = str(error)
            if complaint:
                yield layer.says(key, f'{key_text(key)}: "{printable(text)}" {complaint}')


def _unknown_tool(rule: Rule) -> str:
    if rule.tool.startswith(MCP_PREFIX) or rule.tool in PLAIN_TOOLS:
        return "can have no pattern: its calls are not told apart" if rule.pattern else ""
    if any(rule.is_for(name) for name in TOOLS) or rule.tool == "*":
        return ""
    return f"names no tool that is there{hint(rule.tool.removesuffix('*'), TOOLS)}"


KEY: Key = ("redact",)


def pattern_faults(layer: Layer) -> Iterator[str]:
    """What keeps a pattern from being used. The layer must fit the schema."""
    for text in cast("list[str]", layer.tree.get(KEY[0], [])):
        complaint = _complaint(text)
        if complaint:
            yield layer.says(KEY, f'{key_text(KEY)}: "{printable(text)}" {complaint}')


def _complaint(text: str) -> str:
    try:
        empty = re.compile(text).search("")
    except (re.error, OverflowError, RecursionError) as error:
        return f"is no regular expression: {error}"
    return "also fits an empty text, so it would be found everywhere" if empty else ""


MOST_FAULTS = 20

PLACES: tuple[tuple[str, object], ...] = (
    ("", ConfigFile),
    ("agents.NAME.", AgentSection),
    ("providers.NAME.", ProviderSection),
    ("providers.NAME.models.NAME.", ModelSection),
    ("providers.NAME.models.NAME.price.", PriceSection),
    ("runtime_profiles.NAME.", ProfileSection),
    ("runtime_profiles.NAME.history_pruning.", PruningSection),
    ("acp.", AcpSection),
    ("fetch.", FetchSection),
    ("gateway.", GatewaySection),
    ("permissions.", PermissionsSection),
    ("mcp.", McpSection),
    ("mcp_servers.NAME.", McpServerSection),
)

NAMES_OF_TYPES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "true or false"),
    (int, "a whole number"),
    (float, "a number with a fraction"),
    (str, "text"),
    (list, "a list"),
    (dict, "a table"),
    ((datetime, date, time), "a date or a time"),
)

ADVICE: Mapping[str, str] = {
    "api_key": "; a key itself never stands in a file: put it into an environment variable "
    "and name that in api_key_env",
}

PATTERNS: Mapping[str, str] = {
    "base_url": "must be an http:// or https:// address",
    "url": "must be an http:// or https:// address",
    "allowed_hosts": "must hold names such as agent.example.org, without a port, or addresses",
    "allowed_origins": "must hold origins such as https://example.org, without a path",
    "env": "must be a variable's name with a value without NUL characters",
    "pass_env": "must hold names of environment variables (letters, digits, _)",
    "bearer_env": "must be the name of an environment variable (letters, digits, _), never the token itself",
    "api_key_env": "must be the name of an environment variable (letters, digits, _), never the key itself",
    "system_prompt": "must not hold a NUL character",
    "headers": "must be a header name with a value in plain ASCII on one line",
}


def faults(layer: Layer) -> list[str]:
    """What is wrong with the layer, in the order of its lines; empty when it may be used."""
    try:
        validate(layer.tree)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        found = [(_key(detail, layer), detail) for detail in details]
        found.sort(key=lambda item: layer.find(item[0]).line)
        # Looking for near names takes time, and a file may hold very many faults.
        told = [
            layer.says(key, f"{key_text(key)} {_sentence(key, detail, layer)}")
            for key, detail in found[:MOST_FAULTS]
        ]
        return [*told, *more(len(found))]
    rules = _rule_faults(layer) if "permissions" in layer.tree else []
    return rules + (_pattern_faults(layer) if "redact" in layer.tree else [])


def _rule_faults(layer: Layer) -> list[str]:
    # Loaded here alone: it brings the rules' grammar and the names of the tools.

    found = list(rule_faults(layer))
    return [*found[:MOST_FAULTS], *more(len(found))]


def _pattern_faults(layer: Layer) -> list[str]:

    found = list(pattern_faults(layer))
    return [*found[:MOST_FAULTS], *more(len(found))]


def more(count: int) -> list[str]:
    """The line that closes a list of which only the first MOST_FAULTS are told."""
    return [f"… and {count - MOST_FAULTS} more"] if count > MOST_FAULTS else []


def _key(detail: ErrorDetails, layer: Layer) -> Key:
    """The part of the fault's place that is a key of the tree."""
    key: list[str] = []
    for part in detail["loc"]:
        around = subtree(layer.tree, tuple(key)) if key else layer.tree
        if not isinstance(part, str) or not isinstance(around, dict) or part not in around:
            break
        key.append(part)
    return tuple(key)


def _sentence(key: Key, detail: ErrorDetails, layer: Layer) -> str:
    write = SENTENCES.get(detail["type"])
    context = detail.get("ctx", {})
    return write(key, context, subtree(layer.tree, key)) if write else "cannot be used here"


Writer = Callable[[Key, Mapping[str, object], object], str]


def _wanted(what: str) -> Writer:
    return lambda _key, _context, value: f"must be {what}, but is {_type_name(value)}"


def _text(_key: Key, _context: Mapping[str, object], value: object) -> str:
    if isinstance(value, list):
        return "must be a list of texts in quotes"
    return f"must be text in quotes, but is {_type_name(value)}"


def _bound(words: str, name: str) -> Writer:
    return lambda _key, context, value: f"must be {words} {context[name]}, but is {printable(str(value), 40)}"


def _type_name(value: object) -> str:
    return next((name for kind, name in NAMES_OF_TYPES if isinstance(value, kind)), "something else")


def _unknown(key: Key, _context: Mapping[str, object], _value: object) -> str:
    siblings = keys_of(kind_at(key[:-1]) if len(key) > 1 else ConfigFile)
    word = key[-1]
    if word in ADVICE:
        return f"is no known key{ADVICE[word]}"
    here = nearest(word, siblings)
    elsewhere = [f"{place}{word}" for place, section in PLACES if word in keys_of(section)]
    if elsewhere:
        return f"is no known key here; did you mean {elsewhere[0]}?"
    if here:
        return f"is no known key{hint(word, siblings)}"
    everywhere = {name: place for place, section in reversed(PLACES) for name in keys_of(section)}
    close = nearest(word, everywhere)
    return f"is no known key; the nearest is {everywhere[close]}{close}" if close else "is no known key"


def _choice(key: Key, _context: Mapping[str, object], value: object) -> str:
    known = [str(name) for name in get_args(kind_at(key))]
    if not isinstance(value, str):
        return f"must be one of {', '.join(known)}, but is {_type_name(value)}"
    close = nearest(value, known)
    guess = f'; did you mean "{close}"?' if close else ""
    return f"must be one of {', '.join(known)}{guess}"


def _pattern(key: Key, _context: Mapping[str, object], _value: object) -> str:
    named = next((PATTERNS[part] for part in reversed(key) if part in PATTERNS), None)
    return named or "must be one line of text that is not blank"


SENTENCES: Mapping[str, Writer] = {
    "extra_forbidden": _unknown,
    "literal_error": _choice,
    "string_pattern_mismatch": _pattern,
    "dict_type": _wanted("a table"),
    "list_type": _wanted("a list"),
    "string_type": _text,
    "bool_type": _wanted("true or false"),
    "int_type": _wanted("a whole number"),
    "float_type": _wanted("a number"),
    "finite_number": lambda _key, _context, _value: "must be a number that is finite",
    "greater_than_equal": _bound("at least", "ge"),
    "less_than_equal": _bound("at most", "le"),
    "less_than": _bound("less than", "lt"),
    "json_value": lambda _key, _context, _value: "must hold text, numbers, true, false, lists, tables only",
}
