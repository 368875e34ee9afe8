"""Anthropic's Messages API, streamed: the parts of `anthropic_*` put together."""

import os
from collections.abc import Mapping

from runtime.providers import anthropic_settings
from runtime.providers.anthropic_events import MessagesDecoder
from runtime.providers.anthropic_request import BodyWriter
from runtime.providers.exchange import Dialect, HttpProvider
from runtime.providers.exchange import warm as warm
from runtime.providers.settings import ProviderSettings


def create(settings: ProviderSettings, environ: Mapping[str, str] = os.environ) -> "AnthropicProvider":
    """The provider of a `kind = "anthropic"` section. Raises ConfigError."""
    return AnthropicProvider(settings, environ=environ)


class AnthropicProvider(HttpProvider):
    """A model behind a Messages API."""

    def dialect(self, settings: ProviderSettings) -> Dialect:
        """The Messages API as the section shapes it."""
        writer = BodyWriter(anthropic_settings.shape(settings))
        endpoint = anthropic_settings.endpoint(settings)
        return Dialect(endpoint, writer.body, MessagesDecoder, lambda key: ("X-Api-Key", key))
