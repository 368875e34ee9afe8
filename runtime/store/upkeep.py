"""What the writer does while nobody waits: merge the log, renew leases. Knows a connection, no job.

A checkpoint inside a commit would make one caller wait for all pages, and a log that is merged early is
overwritten in place, which syncs faster than one that grows.
"""

import sqlite3
import time
from contextlib import suppress

from runtime.store.pulse import Pulse

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
