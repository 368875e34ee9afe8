"""Work in worker threads whose caller may leave. Knows no store."""

from collections.abc import Callable
from typing import TypeVar, cast

import trio

from runtime.values.grace import withstanding

T = TypeVar("T")


class Threads:
    """Runs what blocks. What was left alone by its caller is remembered until it ends: whatever comes for the
    same session waits for it, so that a change that is made late overwrites nothing newer.
    """

    def __init__(self, limiter: trio.CapacityLimiter) -> None:
        self._limiter = limiter
        self._late: dict[str, trio.Event] = {}

    @property
    def stands_still(self) -> bool:
        """Whether something goes on that was left alone: what is asked may stand still as well."""
        return bool(self._late)

    async def run(self, work: Callable[[], T], session_id: str = "") -> T:
        """The answer of `work`. A cancellation is withstood for a moment; then the work goes on by itself.

        session_id: whose order it keeps, '' for nobody's.
        """
        while session_id in self._late:
            await self._late[session_id].wait()
        await trio.lowlevel.checkpoint_if_cancelled()
        slot, answers = _Slot(self._limiter), list[T]()
        async with withstanding():
            answers.append(
                await trio.to_thread.run_sync(
                    work, limiter=cast("trio.CapacityLimiter", slot), abandon_on_cancel=True
                )
            )
        if not answers and slot.taken and not slot.ended.is_set() and session_id:
            self._late[session_id] = slot.ended
            slot.behind = lambda: self._late.pop(session_id)
        await trio.lowlevel.checkpoint_if_cancelled()
        return answers[0]


class _Slot:
    """One place of a limiter, as a limiter: it is given back when the thread has ended, whoever waits."""

    def __init__(self, limiter: trio.CapacityLimiter) -> None:
        self.taken = False
        self.ended = trio.Event()
        self.behind: Callable[[], object] = lambda: None
        self._limiter = limiter

    async def acquire_on_behalf_of(self, borrower: object) -> None:
        await self._limiter.acquire_on_behalf_of(borrower)
        self.taken = True

    def release_on_behalf_of(self, borrower: object) -> None:
        self._limiter.release_on_behalf_of(borrower)
        self.behind()
        self.ended.set()
