"""Which kinds of provider there are, and how to get one. Imports an adapter only when it is asked for."""

import importlib
import os
from collections.abc import Callable, Mapping
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, cast

from runtime.providers.settings import ProviderSettings, nearest
from runtime.values.errors import ConfigError

if TYPE_CHECKING:
    from runtime.ports import Provider

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "anthropic": "runtime.providers.anthropic.provider",
        "local": "runtime.providers.local.provider",
        "ollama": "runtime.providers.ollama.provider",
        "openai": "runtime.providers.openai_chat.provider",
        "openai_responses": "runtime.providers.openai_responses.provider",
        "scripted": "runtime.providers.scripted.provider",
    }
)
"""Kind name -> module. Each has `create(settings) -> Provider` and `warm() -> None`.

`create` of a kind that takes `api_key_env` also takes the environment to find it in.
"""


def _module(kind: str, where: str) -> ModuleType:
    path = KINDS.get(kind)
    if path is None:
        raise ConfigError(
            f'{where}: there is no provider kind "{kind}"{nearest(kind, KINDS)} '
            f"(known: {', '.join(sorted(KINDS))})"
        )
    return importlib.import_module(path)


def create(settings: ProviderSettings, environ: Mapping[str, str] = os.environ) -> "Provider":
    """The provider that the settings describe. Raises ConfigError. environ: where its key is looked up.

    Takes 100 to 250 ms for the first one of a kind (imports), so the caller may run it in a
    thread; it does not need a running event loop.
    """
    make = cast("Callable[..., Provider]", _module(settings.kind, settings.key("kind")).create)
    return make(settings, environ) if settings.api_key_env else make(settings)


def warm(kind: str) -> None:
    """Import what the kind needs, so that a later `create` is quick. Blocks: run it in a thread."""
    cast("Callable[[], None]", _module(kind, "warm").warm)()
