"""A store that stands still: its writes begin, and end when it goes on or not at all. Knows no pytest."""

from collections.abc import Awaitable, Callable

import trio

from runtime.store.memory import MemoryStore
from runtime.values.errors import StoreError


class Stalling(MemoryStore):
    """While it stands still a write waits; one that is given up is made when it goes on, as by a disk or a
    server. stall_at: the write, counted from 1, with which it stops by itself, and for how many seconds.
    """

    def __init__(self, stall_at: tuple[int, float] | None = None) -> None:
        super().__init__()
        self.asked = 0
        self._stall_at = stall_at
        self._gate = trio.Event()
        self._gate.set()
        self._late: list[Callable[[], Awaitable[None]]] = []
        inner, self.leases = self.leases, self
        self._leases = inner

    @property
    def stands_still(self) -> bool:
        """Whether it does just now."""
        return not self._gate.is_set()

    def stand_still(self) -> None:
        """From now on."""
        self._gate = trio.Event()

    async def go_on(self) -> None:
        """Make what was begun, then all else."""
        late, self._late = self._late, []
        for write in late:
            try:
                await write()
            except StoreError:
                continue
        self._gate.set()

    async def create_session(self, record):
        await self._when_on(lambda: MemoryStore.create_session(self, record))

    async def append(self, session_id, entries, **given):
        await self._when_on(lambda: MemoryStore.append(self, session_id, entries, **given))

    async def take(self, session_id, holder):
        await self._when_on(None)
        return await self._leases.take(session_id, holder)

    async def release(self, lease):
        await self._when_on(None)
        await self._leases.release(lease)

    def is_lost(self, lease):
        return self._leases.is_lost(lease)

    async def _when_on(self, write: Callable[[], Awaitable[None]] | None) -> None:
        self.asked += 1
        if self._stall_at is not None and self.asked == self._stall_at[0]:
            self.stand_still()
            trio.lowlevel.spawn_system_task(self._go_on_after, self._stall_at[1])
        try:
            await self._gate.wait()
        except trio.Cancelled:
            if write is not None:
                self._late.append(write)
            raise
        if write is not None:
            await write()

    async def _go_on_after(self, seconds: float) -> None:
        await trio.sleep(seconds)
        await self.go_on()
