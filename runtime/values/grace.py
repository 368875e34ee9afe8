"""Work that a cancellation may not cut short at once, and that may not hold it up for long. Knows no work.

trio's cancellation is immediate, and a shield against it is blind. What is written down here as one thing (a
change recorded, in force and told) needs something between the two: so many seconds from the moment when the
cancellation came, and no limit without one.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

GRACE_SECONDS = 0.2
"""How long work that must come to its end may hold up a cancellation. A person takes a second for slow."""


class Grace:
    """What is left of a block to do when its caller is cancelled, piece by piece."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._cancelled = False
        self._part = trio.CancelScope()
        self._limit_seconds = seconds

    def part(self, seconds: float | None = None) -> trio.CancelScope:
        """A scope for the next piece of work. It has the seconds for itself, from the cancellation or, when
        that was earlier, from now; `cancelled_caught` tells that they did not suffice.
        """
        self._part, self._limit_seconds = trio.CancelScope(), seconds or self._seconds
        if self._cancelled:
            self._limit()
        return self._part

    def cancel(self) -> None:
        """The caller was cancelled."""
        self._cancelled = True
        self._limit()

    def _limit(self) -> None:
        self._part.deadline = trio.current_time() + self._limit_seconds


@asynccontextmanager
async def grace_period(seconds: float = GRACE_SECONDS) -> AsyncIterator[Grace]:
    """Within the block a cancellation from outside is felt only by the parts that are asked for.

    Behind the block it is the caller's own again, at his next checkpoint. What the block raises comes out as
    it is.
    """
    grace = Grace(seconds)
    raised: BaseException | None = None

    async def watch() -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            # Not raised again: the nursery would wrap it.
            grace.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        try:
            with trio.CancelScope(shield=True):
                yield grace
        except BaseException as error:  # noqa: BLE001 - raised behind the nursery, for the same reason
            raised = error
        nursery.cancel_scope.shield = True
        nursery.cancel_scope.cancel()
    if raised is not None:
        raise raised


@asynccontextmanager
async def withstanding(seconds: float = GRACE_SECONDS) -> AsyncIterator[trio.CancelScope]:
    """A block that is one part: a cancellation from outside counts so many seconds after it came."""
    async with grace_period(seconds) as grace:
        with grace.part() as scope:
            yield scope
