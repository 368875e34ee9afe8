"""What is known of one configured provider, as plain values. Knows no file format and no adapter."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module

from runtime.errors import ConfigError

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
