"""How long a store is waited for, and who goes on waiting when nobody else does. Knows no session, no port.

A disk, or a server, may stand still in the middle of a commit for as long as it likes, and tells nobody.
Whoever waits for it is answered all the same: after a time, or as soon as he may wait no longer.
"""

import logging
import math
from collections.abc import Awaitable, Callable

import trio

PATIENCE_SECONDS = 10.0
"""How long one write is waited for."""
GRACE_SECONDS = 0.3
"""How long a write may hold up a cancellation: a sound store needs less."""

log = logging.getLogger("wholeturn.store")

Call = Callable[[], Awaitable[object]]


class Standstill:
    """Whether a store stands still. recover: waits for it without a limit, sees to what was kept meanwhile.
    It runs in a task of its own, which ends with the program.
    """

    def __init__(self, recover: Call, patience: float = PATIENCE_SECONDS) -> None:
        self.is_on = False
        self._recover = recover
        self._patience = patience
        self._scope = trio.CancelScope()
        self._over = trio.Event()
        self._over.set()

    async def in_time(self, write: Call, *, patient: bool = False) -> bool:
        """Whether the write was made; it raises what `write` raises, and no cancellation of the caller.

        write: is called again when the caller may wait no longer, for a moment: what it does must bear that.
        False: it may be made later. patient: without a limit, until cancelled.
        """
        with trio.move_on_after(math.inf if patient else self._patience) as limit:
            try:
                await write()
                return True
            except trio.Cancelled:
                if patient or limit.cancel_called:
                    raise
                with trio.move_on_after(GRACE_SECONDS, shield=True):
                    await write()
                    return True
        return False

    def begin(self) -> None:
        """The store stands still."""
        if not self.is_on:
            self.is_on = True
            self._over, self._scope = trio.Event(), trio.CancelScope()
            trio.lowlevel.spawn_system_task(self._wait)

    async def end(self, seconds: float) -> bool:
        """Wait so long for the store to go on, then no longer: False. A cancellation ends the wait."""
        if not self.is_on:
            return True
        with trio.move_on_after(seconds) as limit:
            try:
                await self._over.wait()
            finally:
                self._scope.cancel()
                with trio.CancelScope(shield=True):
                    await self._over.wait()
        return not limit.cancelled_caught

    async def _wait(self) -> None:
        try:
            with self._scope:
                await self._recover()
        except Exception:
            log.exception("what was kept in memory could not be stored")
        finally:
            self.is_on = False
            self._over.set()
