"""Chat completions of every compatible base URL: what a `kind = "openai"` section means, and its provider.

Knows no HTTP client beyond the shared `HttpProvider`.
"""

import os
from collections.abc import Mapping

from runtime.providers.http.client import Dialect, HttpProvider
from runtime.providers.http.client import warm as warm
from runtime.providers.http.settings import Check, Endpoint, as_table, behind, chosen, flag, members, seconds
from runtime.providers.http.settings import endpoint as http_endpoint
from runtime.providers.openai_chat.events import ChatDecoder
from runtime.providers.openai_chat.request import OWN_MEMBERS, BodyShape, BodyWriter
from runtime.providers.settings import ProviderSettings

DEFAULT_BASE_URL = "https://api.openai.com/v1"
PATH = "/chat/completions"
LIMIT_KEYS = ("max_tokens", "max_completion_tokens")
_NEW_LIMIT_KEY_HOSTS = ("api.openai.com",)
"""Its newer models refuse `max_tokens`; nearly every other server knows only that."""


def endpoint_of(settings: ProviderSettings) -> Endpoint:
    """Where to ask. Raises ConfigError that names the key."""
    return http_endpoint(settings, DEFAULT_BASE_URL, lambda base_url: behind(base_url, PATH))


def shape(settings: ProviderSettings) -> BodyShape:
    """What the options say of the body. Raises ConfigError that names the key."""
    options = chosen(settings, OPTIONS)
    default_key = LIMIT_KEYS[endpoint_of(settings).host in _NEW_LIMIT_KEY_HOSTS]
    return BodyShape(
        output_limit_key=str(options.get("output_limit_key", default_key)),
        stream_usage=bool(options.get("stream_usage", True)),
        extra=as_table(options.get("extra_body")),
    )


def _limit_key(settings: ProviderSettings, name: str, value: object) -> object:
    if value not in LIMIT_KEYS:
        raise settings.problem(name, f"must be one of {', '.join(LIMIT_KEYS)}")
    return value


OPTIONS: Mapping[str, Check] = {
    "output_limit_key": _limit_key,
    "stream_usage": flag,
    "idle_timeout": seconds,
    "extra_body": members(OWN_MEMBERS),
}


def create(settings: ProviderSettings, environ: Mapping[str, str] = os.environ) -> "OpenAIProvider":
    """The provider of a `kind = "openai"` section. Raises ConfigError."""
    return OpenAIProvider(settings, environ=environ)


class OpenAIProvider(HttpProvider):
    """A model behind a chat completions API."""

    def dialect(self, settings: ProviderSettings) -> Dialect:
        """Chat completions as the section shapes them."""
        writer = BodyWriter(shape(settings))
        return Dialect(endpoint_of(settings), writer.body, ChatDecoder)
