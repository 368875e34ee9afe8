"""Who watches a store in this process, and what they were not told yet. Knows no store.

Used in trio's thread alone. Nothing happens, and nothing is kept, while nobody watches.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

import trio


class Watcher:
    """The ids that one who watches was not told yet. ended: the store is closed, no more will come."""

    __slots__ = ("_due", "_news", "ended")

    def __init__(self) -> None:
        self._due: set[str] = set()
        self._news = trio.Event()
        self.ended = False

    def add(self, session_ids: tuple[str, ...]) -> None:
        """Those changed."""
        self._due.update(session_ids)
        self._news.set()

    def end(self) -> None:
        """The store is closed."""
        self.ended = True
        self._news.set()

    async def wait(self) -> None:
        """Until there is something to tell, or the end."""
        if not self.ended:
            await self._news.wait()

    def take(self) -> frozenset[str]:
        """What is to be told; the next time only what comes from now on."""
        taken = frozenset(self._due)
        self._due.clear()
        if not self.ended and self._news.is_set():
            self._news = trio.Event()
        return taken


class Watchers:
    """All who watch one store."""

    def __init__(self) -> None:
        self._all: set[Watcher] = set()

    def tell(self, *session_ids: str) -> None:
        """Those changed."""
        for watcher in self._all:
            watcher.add(session_ids)

    def end(self) -> None:
        """The store is closed."""
        for watcher in self._all:
            watcher.end()

    @contextmanager
    def joined(self) -> Iterator[Watcher]:
        """One more, as long as the block lasts."""
        watcher = Watcher()
        self._all.add(watcher)
        try:
            yield watcher
        finally:
            self._all.discard(watcher)
            watcher.end()


async def own_changes(watcher: Watcher) -> frozenset[str]:
    """The next changes that were made in this process."""
    await watcher.wait()
    return watcher.take()


def either(others: AsyncIterator[frozenset[str]]) -> Callable[[Watcher], Awaitable[frozenset[str]]]:
    """The next changes, those of this process or those that come from somewhere else."""

    async def look(watcher: Watcher) -> frozenset[str]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_wake, watcher, nursery.cancel_scope)
            with suppress(StopAsyncIteration):
                # Kept at once: the end of the block may be cancelled.
                watcher.add(tuple(await anext(others)))
            nursery.cancel_scope.cancel()
        return watcher.take()

    return look


async def _wake(watcher: Watcher, scope: trio.CancelScope) -> None:
    await watcher.wait()
    scope.cancel()


class Changed:
    """What `Store.watch` gives: look is asked again and again, and may find nothing. A cancelled wait loses
    nothing as long as `look` does not await anything once it has taken what it found.
    """

    def __init__(
        self, watcher: Watcher, look: Callable[[Watcher], Awaitable[frozenset[str]]] = own_changes
    ) -> None:
        self._watcher = watcher
        self._look = look

    def __aiter__(self) -> "Changed":
        return self

    async def __anext__(self) -> frozenset[str]:
        """The sessions that changed since the last item; waits for one. Ends when the store is closed."""
        await trio.lowlevel.checkpoint()
        while not self._watcher.ended:
            if found := await self._look(self._watcher):
                return found
        raise StopAsyncIteration
