"""The leases that this process holds, and their renewal. Written to by two threads; knows when, and the SQL.

Renewing costs nothing that anyone waits for: it goes along with a commit that is made anyway, or is made,
without waiting for the disk, while nothing is to be written.
"""

import sqlite3
import threading
import time
from collections.abc import Callable

from runtime.store.leasing import LEASE_SECONDS, RENEW_SECONDS
from runtime.stored import Lease

_RENEW = (
    "UPDATE leases SET expires_at = ? WHERE fence = ? AND holder = ?"
    " AND session = (SELECT number FROM sessions WHERE session_id = ?)"
)


class Pulse:
    """clock: seconds since 1970, as leases are measured."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._held: set[Lease] = set()
        self._lost: set[Lease] = set()
        self._last = 0.0
        self._lock = threading.Lock()

    def add(self, lease: Lease) -> None:
        """A lease was just taken."""
        with self._lock:
            if not self._held:
                self._last = time.monotonic()
            self._held.add(lease)
            self._lost -= {lost for lost in self._lost if lost.holder == lease.holder}

    def drop(self, lease: Lease) -> None:
        """A lease is needed no more."""
        with self._lock:
            self._held.discard(lease)
            self._lost.discard(lease)

    def is_lost(self, lease: Lease) -> bool:
        """Whether a renewal found that someone else has the session."""
        return lease in self._lost

    def rest(self) -> float | None:
        """Seconds until the next renewal, >= 0; None when there is nothing to renew."""
        if not self._held:
            return None
        return max(self._last + RENEW_SECONDS - time.monotonic(), 0.0)

    def skip(self) -> None:
        """There is no way to renew just now."""
        self._last = time.monotonic()

    def beat(self, connection: sqlite3.Connection) -> None:
        """Renew all, in the transaction that is open."""
        self._last = time.monotonic()
        with self._lock:
            held = tuple(self._held)
        until = self._clock() + LEASE_SECONDS
        lost = {
            lease
            for lease in held
            if not connection.execute(
                _RENEW, (until, lease.fence, lease.holder.id, lease.session_id)
            ).rowcount
        }
        with self._lock:
            self._held -= lost
            self._lost |= lost
