"""Which kinds of provider there are, and how to get one. Imports an adapter only when it is asked for."""

import importlib
from collections.abc import Callable, Mapping
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, cast

from runtime.errors import ConfigError
from runtime.providers.settings import ProviderSettings, nearest

if TYPE_CHECKING:
    from runtime.ports import Provider

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "anthropic": "runtime.providers.anthropic",
        "openai": "runtime.providers.openai",
        "openai_responses": "runtime.providers.openai_responses",
        "scripted": "runtime.providers.scripted",
    }
)
"""Kind name -> module. Each module has `create(settings) -> Provider` and `warm() -> None`."""


def _module(kind: str, where: str) -> ModuleType:
    path = KINDS.get(kind)
    if path is None:
        raise ConfigError(
            f'{where}: there is no provider kind "{kind}"{nearest(kind, KINDS)} '
            f"(known: {', '.join(sorted(KINDS))})"
        )
    return importlib.import_module(path)


def create(settings: ProviderSettings) -> "Provider":
    """The provider that the settings describe. Raises ConfigError.

    Takes 100 to 250 ms for the first one of a kind (imports), so the caller may run it in a
    thread; it does not need a running event loop.
    """
    make = cast("Callable[[ProviderSettings], Provider]", _module(settings.kind, settings.key("kind")).create)
    return make(settings)


def warm(kind: str) -> None:
    """Import what the kind needs, so that a later `create` is quick. Blocks: run it in a thread."""
    cast("Callable[[], None]", _module(kind, "warm").warm)()
