"""Anthropic's Messages API, streamed: what a `kind = "anthropic"` section means, and the provider made of it.

Knows no HTTP client beyond the shared `HttpProvider`.
"""

import os
from collections.abc import Mapping

from runtime.providers.anthropic.events import MessagesDecoder
from runtime.providers.anthropic.request import LEAST_THINKING, MAX_TOKENS, OWN_MEMBERS, BodyShape, BodyWriter
from runtime.providers.http.client import Dialect, HttpProvider
from runtime.providers.http.client import warm as warm
from runtime.providers.http.settings import (
    Check,
    Endpoint,
    as_table,
    behind,
    chosen,
    flag,
    members,
    seconds,
    tokens,
)
from runtime.providers.http.settings import endpoint as http_endpoint
from runtime.providers.settings import ProviderSettings

DEFAULT_BASE_URL = "https://api.anthropic.com"
VERSION = "2023-06-01"
"""Of the API. A section's own header of that name stands above it."""


def endpoint_of(settings: ProviderSettings) -> Endpoint:
    """Where to ask. Raises ConfigError that names the key."""
    return http_endpoint(settings, DEFAULT_BASE_URL, _path, anthropic_version=VERSION)


def _path(base_url: str) -> str:
    """Some write the base URL with its version, as other APIs want it."""
    if base_url.endswith("/messages"):
        return ""
    return behind(base_url, "/v1") + "/messages"


def shape(settings: ProviderSettings) -> BodyShape:
    """What the options say of the body. Raises ConfigError that names the key."""
    options = chosen(settings, OPTIONS)
    extra = as_table(options.get("extra_body"))
    if extra and "thinking" in extra and "thinking_budget" in options:
        raise settings.problem("thinking_budget", "and extra_body.thinking exclude each other")
    return BodyShape(
        max_tokens=_number(options.get("max_tokens"), MAX_TOKENS),
        thinking_budget=_number(options.get("thinking_budget"), 0),
        prompt_cache=bool(options.get("prompt_cache", True)),
        extra=extra,
    )


def _number(value: object, default: int) -> int:
    return value if isinstance(value, int) else default


OPTIONS: Mapping[str, Check] = {
    "max_tokens": tokens(1),
    "thinking_budget": tokens(LEAST_THINKING),
    "prompt_cache": flag,
    "idle_timeout": seconds,
    "extra_body": members(OWN_MEMBERS),
}


def create(settings: ProviderSettings, environ: Mapping[str, str] = os.environ) -> "AnthropicProvider":
    """The provider of a `kind = "anthropic"` section. Raises ConfigError."""
    return AnthropicProvider(settings, environ=environ)


class AnthropicProvider(HttpProvider):
    """A model behind a Messages API."""

    def dialect(self, settings: ProviderSettings) -> Dialect:
        """The Messages API as the section shapes it."""
        writer = BodyWriter(shape(settings))
        endpoint = endpoint_of(settings)
        return Dialect(endpoint, writer.body, MessagesDecoder, lambda key: ("X-Api-Key", key))
