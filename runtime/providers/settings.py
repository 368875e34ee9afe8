"""What is known of one configured provider, and how long its model shall think. Knows no adapter."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import MappingProxyType

from runtime.values.errors import ConfigError

LOCAL_WINDOW = 8192
"""Tokens of the window that a model in this process is started with, unless its section says how many."""


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """One `[providers.NAME]` section.

    kind: a name of `runtime.providers.catalog.KINDS`. api_key_env: the environment variable that
    holds the key, '' for a server that wants none. context_window: tokens, 0 = not known.
    max_output_tokens: None leaves it to the provider. headers: sent with every request.
    options: what only this kind understands, see README.md. source: where the section stands
    (file and line), for messages.
    """

    name: str
    kind: str
    base_url: str = ""
    api_key_env: str = ""
    model: str = ""
    context_window: int = 0
    max_output_tokens: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)
    source: str = ""

    def key(self, name: str) -> str:
        """How a message names one of this section's keys."""
        return f"providers.{self.name}.{name}"

    def problem(self, key: str, text: str) -> ConfigError:
        """The error for a key of this section that cannot be used."""
        where = f" ({self.source})" if self.source else ""
        return ConfigError(f"{self.key(key)}{where} {text}")


def nearest(word: str, known: Iterable[str]) -> str:
    """'; did you mean "x"?' for the closest known word, '' when none is close."""
    close = import_module("difflib").get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f'; did you mean "{close[0]}"?' if close else ""


def check_options(settings: ProviderSettings, known: Iterable[str]) -> None:
    """Raises ConfigError for an option that the kind does not have, with the nearest one it has."""
    names = tuple(known)
    for option in settings.options:
        if option not in names:
            hint = nearest(option, names)
            raise settings.problem(option, f'is no option of kind "{settings.kind}"{hint}')


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


Options = dict[str, object]


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
