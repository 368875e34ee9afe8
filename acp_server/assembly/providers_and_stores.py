"""The providers and the stores of one process, each made once, and whether a model answers.

Knows no session: who is to be told of a store's trouble is the caller's business.
"""

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import trio

from acp_server.config.secrets import KeyedEnviron
from runtime.ports import Provider
from runtime.providers import catalog
from runtime.providers.settings import ProviderSettings
from runtime.store.opening import open_store
from runtime.values.errors import ProviderError, ProviderErrorKind
from runtime.values.model import ModelRequest, Segment
from runtime.values.rows import Row
from runtime.values.stored import Store

if TYPE_CHECKING:
    from runtime.ports import Provider


class Providers:
    """Makes providers on demand, with keys out of the environment or as stored."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._made: dict[str, Provider] = {}
        self._lock = trio.Lock()

    async def get(self, settings: ProviderSettings) -> "Provider":
        """The provider that the settings describe. Raises ConfigError."""
        # Two models of one section differ in their settings and may be in use at once.
        key, keys = repr(settings), KeyedEnviron(self._env)
        async with self._lock:
            if key not in self._made:
                # Its imports take a while; a cancelled prompt need not wait for them.
                self._made[key] = await trio.to_thread.run_sync(
                    catalog.create, settings, keys, abandon_on_cancel=True
                )
            return self._made[key]

    async def aclose(self) -> None:
        """Close them all."""
        for provider in self._made.values():
            await provider.aclose()


log = logging.getLogger("wholeturn.stores")


class Stores:
    """Opens stores on demand. tell: gets a sentence for the person at each trouble, in trio's thread."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.troubles: list[str] = []
        self._tell = tell
        self._open: dict[str, Store] = {}

    def get(self, where: str) -> Store:
        """The store at a path, or "memory". Raises ConfigError."""
        if where not in self._open:
            self._open[where] = open_store(where, on_trouble=self._trouble)
        return self._open[where]

    async def aclose(self) -> None:
        """Close them all."""
        for store in self._open.values():
            await store.aclose()

    def _trouble(self, message: str) -> None:
        log.warning("%s", message)
        self.troubles.append(message)
        self._tell(message)


SECONDS = 60.0
QUESTION = "Reply with the word OK."


async def try_once(provider: Provider, model: str) -> None:
    """Ask, and believe the first part of an answer. Raises AuthRequired and ProviderError."""
    request = ModelRequest(model, (Segment((Row("user", QUESTION),)),))
    with trio.move_on_after(SECONDS):
        async with provider.stream(request) as batches:
            async for batch in batches:
                if batch:
                    return
    text = f'"{provider.name}" did not answer within {SECONDS:.0f} seconds.'
    raise ProviderError(text, kind=ProviderErrorKind.TIMEOUT, retryable=True)
