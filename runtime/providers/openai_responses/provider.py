"""OpenAI's Responses API, streamed: what a `kind = "openai_responses"` section means, and its provider.

Knows no HTTP client beyond the shared `HttpProvider`.
"""

import os
from collections.abc import Mapping

from runtime.providers.http.client import Dialect, HttpProvider
from runtime.providers.http.client import warm as warm
from runtime.providers.http.settings import Check, Endpoint, as_table, behind, chosen, flag, members, seconds
from runtime.providers.http.settings import endpoint as http_endpoint
from runtime.providers.openai_responses.events import ResponsesDecoder
from runtime.providers.openai_responses.request import OWN_MEMBERS, BodyShape, BodyWriter
from runtime.providers.settings import ProviderSettings

DEFAULT_BASE_URL = "https://api.openai.com/v1"


def endpoint_of(settings: ProviderSettings) -> Endpoint:
    """Where to ask. Raises ConfigError that names the key."""
    return http_endpoint(settings, DEFAULT_BASE_URL, lambda base_url: behind(base_url, "/responses"))


def shape(settings: ProviderSettings) -> BodyShape:
    """What the options say of the body. Raises ConfigError that names the key."""
    options = chosen(settings, OPTIONS)
    encrypted = options.get("encrypted_reasoning")
    return BodyShape(
        encrypted_reasoning=encrypted if isinstance(encrypted, bool) else None,
        extra=as_table(options.get("extra_body")),
    )


OPTIONS: Mapping[str, Check] = {
    "encrypted_reasoning": flag,
    "idle_timeout": seconds,
    "extra_body": members(OWN_MEMBERS),
}


def create(settings: ProviderSettings, environ: Mapping[str, str] = os.environ) -> "ResponsesProvider":
    """The provider of a `kind = "openai_responses"` section. Raises ConfigError."""
    return ResponsesProvider(settings, environ=environ)


class ResponsesProvider(HttpProvider):
    """A model behind a Responses API."""

    def dialect(self, settings: ProviderSettings) -> Dialect:
        """The Responses API as the section shapes it."""
        writer = BodyWriter(shape(settings))
        return Dialect(endpoint_of(settings), writer.body, ResponsesDecoder)
