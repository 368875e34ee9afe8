"""A change on its way from a trio task to the writer thread and back. Knows no SQL."""

import threading

import trio

from runtime.store.changes import Work


class Job:
    """Work that one task waits for. Either the writer or the cancelled waiter claims it, never both:
    so a change is made whole or not at all, and its caller knows.
    """

    __slots__ = ("_claim", "_task", "_token", "error", "withdrawn", "work")

    def __init__(self, work: Work) -> None:
        self.work = work
        self.error: Exception | None = None
        self.withdrawn = False
        self._claim = threading.Lock()
        self._task: trio.lowlevel.Task | None = None
        self._token: trio.lowlevel.TrioToken | None = None

    def expect(self) -> None:
        """Name the running task as the one that will wait. Without it nobody hears the outcome."""
        self._task = trio.lowlevel.current_task()
        self._token = trio.lowlevel.current_trio_token()

    async def wait(self) -> None:
        """Until the change is durable; raises what stopped it. A cancellation that came too late to stop
        the change is honoured after it.
        """
        await trio.lowlevel.wait_task_rescheduled(self._withdraw)
        if self.error is not None:
            raise self.error
        await trio.lowlevel.checkpoint_if_cancelled()

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

    def _wake(self) -> None:
        if self._task is not None:
            trio.lowlevel.reschedule(self._task)

    def _withdraw(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self.withdrawn = self.claim()
        return trio.lowlevel.Abort.SUCCEEDED if self.withdrawn else trio.lowlevel.Abort.FAILED
