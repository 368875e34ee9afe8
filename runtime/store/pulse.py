"""The leases of this process in a SQLite file, and their renewal. Knows when, and the SQL.

Renewing costs nothing that anyone waits for: it goes along with a commit that is made anyway, or is made,
without waiting for the disk, while nothing is to be written.
"""

import sqlite3
import time
from collections.abc import Callable

from runtime.store.held import HeldLeases
from runtime.store.leasing import LEASE_SECONDS, RENEW_SECONDS
from runtime.stored import Lease

_RENEW = (
    "UPDATE leases SET expires_at = ? WHERE fence = ? AND holder = ?"
    " AND session = (SELECT number FROM sessions WHERE session_id = ?)"
)


class Pulse(HeldLeases):
    """clock: seconds since 1970, as leases are measured."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self._last = 0.0

    def add(self, lease: Lease) -> None:
        """A lease was just taken."""
        if not self._held:
            self._last = time.monotonic()
        super().add(lease)

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
        until = self._clock() + LEASE_SECONDS
        self.lose(
            {
                lease
                for lease in self.held()
                if not connection.execute(
                    _RENEW, (until, lease.fence, lease.holder.id, lease.session_id)
                ).rowcount
            }
        )
