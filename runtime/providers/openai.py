"""OpenAI chat completions, of every compatible base URL: the parts of `openai_*` put together."""

import os
from collections.abc import Mapping

from runtime.providers import openai_settings
from runtime.providers.exchange import Dialect, HttpProvider
from runtime.providers.exchange import warm as warm
from runtime.providers.openai_events import ChatDecoder
from runtime.providers.openai_request import BodyWriter
from runtime.providers.settings import ProviderSettings


def create(settings: ProviderSettings, environ: Mapping[str, str] = os.environ) -> "OpenAIProvider":
    """The provider of a `kind = "openai"` section. Raises ConfigError."""
    return OpenAIProvider(settings, environ=environ)


class OpenAIProvider(HttpProvider):
    """A model behind a chat completions API."""

    def dialect(self, settings: ProviderSettings) -> Dialect:
        """Chat completions as the section shapes them."""
        writer = BodyWriter(openai_settings.shape(settings))
        return Dialect(openai_settings.endpoint(settings), writer.body, ChatDecoder)
