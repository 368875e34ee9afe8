"""Leases while the store is in trouble: nobody can be asked, so the session goes on with what it has."""

from runtime.errors import StoreError
from runtime.store.backlog import Backlog
from runtime.store.faults import StoreTrouble, no_session
from runtime.stored import Holder, Lease, Leases, Store

_UNKNOWN = -1


class ResilientLeases:
    """The `Leases` port over one that may fail. A lease of fence 0 stands for what could not be taken: what
    is kept in memory is stored later if nobody else holds the session by then.
    """

    def __init__(self, store: Store, inner: Leases, backlog: Backlog) -> None:
        self._store = store
        self._inner = inner
        self._backlog = backlog

    async def take(self, session_id: str, holder: Holder) -> Lease:
        """See the port."""
        leases: list[Lease] = []

        async def take() -> None:
            leases[:] = [await self._inner.take(session_id, holder)]

        try:
            if not self._backlog.standstill.is_on:
                if await self._backlog.standstill.in_time(take):
                    return leases[0]
                self._backlog.stand_still()
        except StoreTrouble as trouble:
            self._backlog.report(trouble)
        except StoreError:
            # One that is not stored yet is nobody else's.
            if await self._store.session(session_id) is None:
                raise no_session(session_id) from None
        return Lease(session_id, holder, 0, _UNKNOWN)

    async def release(self, lease: Lease) -> None:
        """See the port. A store that stands still is not waited for: a lease runs out by itself."""
        if lease.fence and not self._backlog.standstill.is_on:
            await self._inner.release(lease)

    def is_lost(self, lease: Lease) -> bool:
        """See the port."""
        return bool(lease.fence) and self._inner.is_lost(lease)
