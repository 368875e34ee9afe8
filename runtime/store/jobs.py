"""A change on its way from a trio task to the writer thread and back. Knows no SQL."""

import threading

import trio

from runtime.store.changes import Work

GRACE_SECONDS = 0.2
"""How long a change that was begun may hold up a cancellation."""


class Job:
    """Work that one task waits for. Either the writer or the cancelled waiter claims it, never both:
    so a change that was withdrawn is not made, and its caller knows.
    """

    __slots__ = ("_claim", "_done", "_task", "_token", "error", "withdrawn", "work")

    def __init__(self, work: Work) -> None:
        self.work = work
        self.error: Exception | None = None
        self.withdrawn = False
        self._done = False
        self._claim = threading.Lock()
        self._task: trio.lowlevel.Task | None = None
        self._token: trio.lowlevel.TrioToken | None = None

    def expect(self) -> None:
        """Say that somebody here will wait. Without it nobody hears the outcome."""
        self._token = trio.lowlevel.current_trio_token()

    async def wait(self) -> None:
        """Until the change is durable; raises what stopped it.

        A cancellation withdraws a change that waits. One that was begun is waited for a moment; if it stands
        still it is left alone, and may be made later.
        """
        try:
            await self._finished()
        except trio.Cancelled:
            self.withdrawn = self.claim()
            if not self.withdrawn:
                with trio.move_on_after(GRACE_SECONDS, shield=True):
                    await self._finished()
            if self.error is None:
                raise
        if self.error is not None:
            raise self.error

    def claim(self) -> bool:
        """True for the first who asks."""
        return self._claim.acquire(blocking=False)

    def finish(self, error: Exception | None) -> None:
        """Wake the waiter, from the writer's thread. error: None when the change is durable."""
        self.error = error
        if self._token is not None:
            try:
                self._token.run_sync_soon(self._wake)
            except trio.RunFinishedError:
                # The program ended without waiting; the change is made all the same.
                return

    async def _finished(self) -> None:
        if not self._done:
            self._task = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._stop_waiting)

    def _wake(self) -> None:
        self._done = True
        task, self._task = self._task, None
        if task is not None:
            trio.lowlevel.reschedule(task)

    def _stop_waiting(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED
