"""A change on its way from a trio task to the writer thread and back, and what the writer does at rest.

At rest it merges the log and renews leases. A checkpoint inside a commit would make one caller wait for all
pages, and a log that is merged early is overwritten in place, which syncs faster than one that grows. Knows a
connection, no statement of ours.
"""

import sqlite3
import threading
import time
from contextlib import suppress

import trio

from runtime.store.sqlite.leases import Pulse
from runtime.store.sqlite.statements import Work
from runtime.values.grace import GRACE_SECONDS


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


_COMMITS_TO_MERGE = 64
_REST_SECONDS = 0.05


class Upkeep:
    """For whoever holds the connection, except `wipe_log`. pulse: of the leases."""

    def __init__(self, pulse: Pulse) -> None:
        self._pulse = pulse
        self._unmerged = 0
        self._last = 0.0
        self._wipe = False

    def wipe_log(self) -> None:
        """Something was removed: leave nothing of it in the log, as soon as there was another commit."""
        self._wipe = True

    def committed(self) -> None:
        """There was a commit."""
        self._unmerged += 1
        self._last = time.monotonic()

    def go_along(self, connection: sqlite3.Connection) -> None:
        """Before a commit that is made anyway: renew what is due."""
        if self._pulse.rest() == 0:
            self._pulse.beat(connection)

    def rest(self) -> float | None:
        """After how many seconds without a job `use_rest` is due; None: there is nothing to do."""
        if self._should_merge:
            return max(self._last + _REST_SECONDS - time.monotonic(), 0.0)
        return self._pulse.rest()

    def use_rest(self, connection: sqlite3.Connection | None) -> None:
        """Do what is due. connection: None while the file is not there."""
        if self._should_merge:
            self._merge_log(connection)
        elif connection is None:
            self._pulse.skip()
        else:
            self._beat(connection)

    @property
    def _should_merge(self) -> bool:
        return self._unmerged >= _COMMITS_TO_MERGE or (self._wipe and self._unmerged > 0)

    def _merge_log(self, connection: sqlite3.Connection | None) -> None:
        self._unmerged = 0
        if connection is not None:
            how = "TRUNCATE" if self._wipe else "PASSIVE"
            with suppress(sqlite3.Error):
                # Whoever still reads from the log keeps it; then the next commit brings another try.
                busy = connection.execute(f"PRAGMA wal_checkpoint({how})").fetchone()[0]
                self._wipe = self._wipe and bool(busy)

    def _beat(self, connection: sqlite3.Connection) -> None:
        # Not synced: should the power fail, nobody holds a lease any more.
        try:
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("BEGIN IMMEDIATE")
            self._pulse.beat(connection)
            connection.execute("COMMIT")
            self._unmerged += 1
        except sqlite3.Error:
            self._pulse.skip()
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        finally:
            connection.execute("PRAGMA synchronous = FULL")
