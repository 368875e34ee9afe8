"""The session stores of one process, each opened once, with all that was ever wrong with them.

Knows no session: who is to be told is the caller's business.
"""

import logging
from collections.abc import Callable

from runtime.store.opening import open_store
from runtime.stored import Store

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
