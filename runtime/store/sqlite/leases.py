"""Leases in a SQLite file: their table, who has what, and how what this process holds is renewed.

Renewing costs nothing that anyone waits for: it goes along with a commit that is made anyway, or is made,
without waiting for the disk, while nothing is to be written. Knows SQL and when, no thread.
"""

import sqlite3
import time
from collections.abc import Callable, Coroutine
from typing import Any

from runtime.store.common.faults import no_session
from runtime.store.common.leases import LEASE_SECONDS, RENEW_SECONDS, HeldLeases, held_in, owner_of, taken
from runtime.store.sqlite.shared_entries import last_seq, segments
from runtime.store.sqlite.statements import Work
from runtime.values.stored import Holder, Lease

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


_FIND = (
    "SELECT number, fence, holder, owner, expires_at"
    " FROM sessions LEFT JOIN leases ON session = number WHERE session_id = ?"
)
_PUT = "INSERT OR REPLACE INTO leases (session, fence, holder, owner, expires_at) VALUES (?, ?, ?, ?, ?)"
_FREE = (
    "UPDATE leases SET holder = '', expires_at = 0 WHERE fence = ? AND holder = ?"
    " AND session = (SELECT number FROM sessions WHERE session_id = ?)"
)


class SqliteLeases:
    """The `Leases` port. write: carries out a change in the writer's thread."""

    def __init__(
        self,
        write: Callable[[Work], Coroutine[Any, Any, None]],
        pulse: Pulse,
        clock: Callable[[], float],
    ) -> None:
        self._write = write
        self._pulse = pulse
        self._clock = clock

    async def take(self, session_id: str, holder: Holder) -> Lease:
        leases: list[Lease] = []
        left = False

        def work(connection: sqlite3.Connection) -> None:
            found = connection.execute(_FIND, (session_id,)).fetchone()
            if found is None:
                raise no_session(session_id)
            number, *row = found
            held = taken(session_id, held_in(row), holder, self._clock())
            connection.execute(_PUT, (number, held.fence, holder.id, owner_of(holder), held.expires_at))
            last = last_seq(connection, segments(connection, number))
            leases[:] = [Lease(session_id, holder, held.fence, last)]
            # Here, in the writer's thread, so that it knows before it rests that there is something to renew.
            self._pulse.add(leases[0])
            if left:
                # Made after its caller had gone: nobody would ever give it back.
                self._pulse.drop(leases[0])

        try:
            await self._write(work)
        except BaseException:
            left = True
            for lease in leases:
                self._pulse.drop(lease)
            raise
        return leases[0]

    async def release(self, lease: Lease) -> None:
        self._pulse.drop(lease)
        given = (lease.fence, lease.holder.id, lease.session_id)

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_FREE, given)

        await self._write(work)

    def is_lost(self, lease: Lease) -> bool:
        return self._pulse.is_lost(lease)
