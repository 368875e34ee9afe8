"""Ollama's own chat API: the parts of `ollama_*` put together."""

import os
from collections.abc import Mapping

from runtime.providers import ollama_settings
from runtime.providers.exchange import Dialect, HttpProvider
from runtime.providers.exchange import warm as warm
from runtime.providers.ollama_events import OllamaDecoder
from runtime.providers.ollama_lines import LineReader
from runtime.providers.ollama_request import BodyWriter
from runtime.providers.settings import ProviderSettings


def create(settings: ProviderSettings, environ: Mapping[str, str] = os.environ) -> "OllamaProvider":
    """The provider of a `kind = "ollama"` section. Raises ConfigError."""
    return OllamaProvider(settings, environ=environ)


class OllamaProvider(HttpProvider):
    """A model behind Ollama's own API."""

    def dialect(self, settings: ProviderSettings) -> Dialect:
        """The chat API as the section shapes it."""
        writer = BodyWriter(ollama_settings.shape(settings))
        return Dialect(
            ollama_settings.endpoint(settings),
            writer.body,
            OllamaDecoder,
            reader=LineReader,
            hints=ollama_settings.HINTS,
        )
