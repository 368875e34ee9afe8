"""OpenAI's Responses API, streamed: the parts of `responses_*` put together."""

import os
from collections.abc import Mapping

from runtime.providers import responses_settings
from runtime.providers.exchange import Dialect, HttpProvider
from runtime.providers.exchange import warm as warm
from runtime.providers.responses_events import ResponsesDecoder
from runtime.providers.responses_request import BodyWriter
from runtime.providers.settings import ProviderSettings


def create(settings: ProviderSettings, environ: Mapping[str, str] = os.environ) -> "ResponsesProvider":
    """The provider of a `kind = "openai_responses"` section. Raises ConfigError."""
    return ResponsesProvider(settings, environ=environ)


class ResponsesProvider(HttpProvider):
    """A model behind a Responses API."""

    def dialect(self, settings: ProviderSettings) -> Dialect:
        """The Responses API as the section shapes it."""
        writer = BodyWriter(responses_settings.shape(settings))
        return Dialect(responses_settings.endpoint(settings), writer.body, ResponsesDecoder)
