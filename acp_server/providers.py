"""The providers of one process, each made once. Knows no session; `runtime.providers` has the kinds."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import trio

from acp_server.config.keystore import KeyedEnviron
from runtime.providers import catalog
from runtime.providers.settings import ProviderSettings

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
