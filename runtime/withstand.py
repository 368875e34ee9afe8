"""Work that a cancellation may not cut short at once, and that may not hold it up for long. Knows no work."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def withstanding(seconds: float) -> AsyncIterator[trio.CancelScope]:
    """A cancellation from outside counts only so many seconds after it came. Without one there is no limit.

    Gives the scope that is cancelled then. Behind the block the cancellation is the caller's own again, at
    his next checkpoint. What the block raises comes out as it is.
    """
    inner = trio.CancelScope(shield=True)
    raised: BaseException | None = None

    async def watch() -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            # Not raised again: the nursery would wrap it.
            inner.deadline = min(inner.deadline, trio.current_time() + seconds)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        try:
            with inner:
                yield inner
        except BaseException as error:  # noqa: BLE001 - raised behind the nursery, for the same reason
            raised = error
        nursery.cancel_scope.shield = True
        nursery.cancel_scope.cancel()
    if raised is not None:
        raise raised
