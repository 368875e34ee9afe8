"""Leases in PostgreSQL, measured by the server's clock, and the thread that renews them."""

import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from runtime.store.common.leases import LEASE_SECONDS, RENEW_SECONDS, HeldLeases, owner_of, taken
from runtime.store.postgres.connections import Link
from runtime.store.postgres.schema import Connection
from runtime.store.postgres.statements import Clock, held_now, lock
from runtime.values.errors import StoreError
from runtime.values.stored import Holder, Lease

_PUT = (
    "INSERT INTO wholeturn_leases (session, fence, holder, owner, expires_at) VALUES (%s, %s, %s, %s, %s)"
    " ON CONFLICT (session) DO UPDATE SET fence = excluded.fence, holder = excluded.holder,"
    " owner = excluded.owner, expires_at = excluded.expires_at"
)
_FREE = (
    "UPDATE wholeturn_leases SET holder = '', expires_at = 0 WHERE fence = %s AND holder = %s"
    " AND session = (SELECT number FROM wholeturn_sessions WHERE session_id = %s)"
)
_RENEW = (
    "UPDATE wholeturn_leases AS there SET expires_at = extract(epoch FROM clock_timestamp()) + %s"
    " FROM unnest(%s::text[], %s::bigint[], %s::text[]) AS mine (session_id, fence, holder)"
    " JOIN wholeturn_sessions AS head USING (session_id)"
    " WHERE session = number AND there.fence = mine.fence AND there.holder = mine.holder"
    " RETURNING mine.session_id, mine.fence"
)
_NO_SYNC = "SET LOCAL synchronous_commit = off"
_RENEWALS = LEASE_SECONDS / RENEW_SECONDS
"""Renewals within the time of a lease."""
_STOPPING_SECONDS = 5.0
_SOON = 6
"""A renewal that failed is tried again after this part of the time between two."""

Write = Callable[[Callable[[Connection], Any]], Coroutine[Any, Any, Any]]


class Heartbeat(HeldLeases):
    """Renews what is held, in a thread that lives as long as something is. No caller waits for it, and no
    disk: should the server's power fail, nobody holds a lease any more.
    """

    def __init__(self, link: Link, seconds: float) -> None:
        super().__init__()
        self._link = link
        self._seconds = seconds
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    def add(self, lease: Lease) -> None:
        """A lease was just taken."""
        super().add(lease)
        if self._thread is None:
            self._thread = threading.Thread(target=self._beat, name="wholeturn-leases", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Renew nothing more; waits for the renewal that is going on, unless the server stands still."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_STOPPING_SECONDS)

    def _beat(self) -> None:
        every = self._seconds / _RENEWALS
        pause = every
        while not self._stop.wait(pause):
            held = self.held()
            try:
                self.lose(
                    self._link.write(partial(_renew, held=held, seconds=self._seconds)) if held else set()
                )
                pause = every
            except StoreError:
                pause = every / _SOON


class PostgresLeases:
    """The `Leases` port. write: carries out a transaction in a thread."""

    def __init__(self, write: Write, heartbeat: Heartbeat, clock: Clock, seconds: float) -> None:
        self._write = write
        self._heartbeat = heartbeat
        self._clock = clock
        self._seconds = seconds

    async def take(self, session_id: str, holder: Holder) -> Lease:
        leases: list[Lease] = []

        def work(connection: Connection) -> None:
            number, last_seq = lock(connection, session_id)
            held, now = held_now(connection, session_id, self._clock)
            new = taken(session_id, held, holder, now, self._seconds)
            connection.execute(_PUT, (number, new.fence, holder.id, owner_of(holder), new.expires_at))
            leases[:] = [Lease(session_id, holder, new.fence, last_seq)]

        await self._write(work)
        self._heartbeat.add(leases[0])
        return leases[0]

    async def release(self, lease: Lease) -> None:
        self._heartbeat.drop(lease)
        given = (lease.fence, lease.holder.id, lease.session_id)
        await self._write(lambda connection: connection.execute(_FREE, given) and None)

    def is_lost(self, lease: Lease) -> bool:
        return self._heartbeat.is_lost(lease)


def _renew(connection: Connection, held: tuple[Lease, ...], seconds: float) -> set[Lease]:
    """Those that others have."""
    connection.execute(_NO_SYNC)
    columns = [
        [lease.session_id for lease in held],
        [lease.fence for lease in held],
        [lease.holder.id for lease in held],
    ]
    rows = connection.execute(_RENEW, (seconds, *columns)).fetchall()
    kept = {(session_id, fence) for session_id, fence in rows}
    return {lease for lease in held if (lease.session_id, lease.fence) not in kept}
