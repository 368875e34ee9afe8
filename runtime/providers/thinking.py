"""How long a model shall think, as the options of each kind of provider that can be told so. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from runtime.providers.settings import ProviderSettings

Options = dict[str, object]

BUDGETS: Mapping[str, int] = MappingProxyType({"off": 0, "low": 2048, "medium": 8192, "high": 24576})
"""Tokens, for APIs that want a number. What is left of the output limit for the answer: see the adapter."""
EFFORTS = ("low", "medium", "high")
"""The words of APIs that want one."""


def levels(settings: ProviderSettings) -> tuple[str, ...]:
    """The levels that may be chosen for this provider; none when its kind has no such thing."""
    kind = _KINDS.get(settings.kind)
    return () if kind is None or _is_fixed(settings) else kind[0]


def with_level(settings: ProviderSettings, level: str) -> ProviderSettings:
    """The provider with its options set for one of its levels; any other word leaves them as they are."""
    if level not in levels(settings):
        return settings
    return replace(settings, options=_KINDS[settings.kind][1](dict(settings.options), level))


def _is_fixed(settings: ProviderSettings) -> bool:
    # Whoever writes this member by hand wants it as it is, and the adapter takes only one of the two.
    return settings.kind == "anthropic" and "thinking" in _table(settings.options.get("extra_body"))


def _table(value: object) -> Options:
    return dict(value) if isinstance(value, Mapping) else {}


def _budget(options: Options, level: str) -> Options:
    kept = {name: value for name, value in options.items() if name != "thinking_budget"}
    return {**kept, "thinking_budget": BUDGETS[level]} if BUDGETS[level] else kept


def _effort(options: Options, level: str) -> Options:
    return {**options, "extra_body": {**_table(options.get("extra_body")), "reasoning_effort": level}}


def _effort_inside(options: Options, level: str) -> Options:
    body = _table(options.get("extra_body"))
    return {
        **options,
        "extra_body": {**body, "reasoning": {**_table(body.get("reasoning")), "effort": level}},
    }


def _think(options: Options, level: str) -> Options:
    return {**options, "think": level if BUDGETS[level] else False}


_KINDS: Mapping[str, tuple[tuple[str, ...], Callable[[Options, str], Options]]] = MappingProxyType(
    {
        "anthropic": (tuple(BUDGETS), _budget),
        "ollama": (tuple(BUDGETS), _think),
        "openai": (EFFORTS, _effort),
        "openai_responses": (EFFORTS, _effort_inside),
    }
)
