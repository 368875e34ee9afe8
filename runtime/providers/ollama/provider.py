"""Ollama's own chat API: what a `kind = "ollama"` section means, and the provider made of it.

Knows no HTTP client beyond the shared `HttpProvider`.
"""

import os
from collections.abc import Mapping
from dataclasses import replace

from runtime.providers.http.client import Dialect, HttpProvider
from runtime.providers.http.client import warm as warm
from runtime.providers.http.settings import Check, Endpoint, as_table, chosen, members, seconds
from runtime.providers.http.settings import endpoint as http_endpoint
from runtime.providers.ollama.events import LineReader, OllamaDecoder
from runtime.providers.ollama.request import OWN_MEMBERS, OWN_OPTIONS, BodyShape, BodyWriter
from runtime.providers.settings import ProviderSettings
from runtime.values.errors import ProviderErrorKind

DEFAULT_BASE_URL = "http://127.0.0.1:11434"
PATH = "/api/chat"
IDLE_SECONDS = 300.0
"""As long as the server itself gives a model to load, before which not a byte comes."""
HINTS = {
    ProviderErrorKind.UNREACHABLE: "Is Ollama running? `ollama serve` starts it.",
    ProviderErrorKind.NOT_FOUND: "`ollama pull {model}` fetches a model that is not there yet.",
}


def endpoint_of(settings: ProviderSettings) -> Endpoint:
    """Where to ask. Raises ConfigError that names the key."""
    # The address of its other API, as many settings have it, is taken for the server's.
    server = replace(settings, base_url=settings.base_url.rstrip("/").removesuffix("/v1"))
    made = http_endpoint(server, DEFAULT_BASE_URL, _path, Accept="application/x-ndjson, application/json")
    return made if "idle_timeout" in settings.options else replace(made, idle_seconds=IDLE_SECONDS)


def _path(base_url: str) -> str:
    for end in (PATH, "/api"):
        if base_url.endswith(end):
            return PATH.removeprefix(end)
    return PATH


def shape(settings: ProviderSettings) -> BodyShape:
    """What the options say of the body. Raises ConfigError that names the key."""
    options = chosen(settings, OPTIONS)
    extra = dict(as_table(options.get("extra_body")) or {})
    own: dict[str, object] = {name: options[name] for name in ("think", "keep_alive") if name in options}
    inner = as_table(extra.pop("options", None)) or {}
    return BodyShape(settings.model, settings.context_window, {**own, **extra}, inner)


def _think(settings: ProviderSettings, name: str, value: object) -> object:
    if not isinstance(value, bool) and (not isinstance(value, str) or not value.strip()):
        raise settings.problem(name, 'must be true, false or a level such as "low"')
    return value


def _keep_alive(settings: ProviderSettings, name: str, value: object) -> object:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number and (not isinstance(value, str) or not value.strip()):
        raise settings.problem(name, 'must be a time such as "10m", or seconds; -1 keeps the model for good')
    return value


def _extra_body(settings: ProviderSettings, name: str, value: object) -> object:
    table = as_table(members(OWN_MEMBERS)(settings, name, value)) or {}
    inner = table.get("options", {})
    if not isinstance(inner, Mapping):
        raise settings.problem(name, "has options that are no table")
    for option, key in OWN_OPTIONS.items():
        if option in inner:
            raise settings.problem(name, f"may not set options.{option}; {key} of the section does")
    return table


OPTIONS: Mapping[str, Check] = {
    "think": _think,
    "keep_alive": _keep_alive,
    "idle_timeout": seconds,
    "extra_body": _extra_body,
}


def create(settings: ProviderSettings, environ: Mapping[str, str] = os.environ) -> "OllamaProvider":
    """The provider of a `kind = "ollama"` section. Raises ConfigError."""
    return OllamaProvider(settings, environ=environ)


class OllamaProvider(HttpProvider):
    """A model behind Ollama's own API."""

    def dialect(self, settings: ProviderSettings) -> Dialect:
        """The chat API as the section shapes it."""
        writer = BodyWriter(shape(settings))
        return Dialect(
            endpoint_of(settings),
            writer.body,
            OllamaDecoder,
            reader=LineReader,
            hints=HINTS,
        )
