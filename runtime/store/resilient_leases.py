"""Leases while the store is in trouble: nobody can be asked, so the session goes on with what it has."""

from collections.abc import Callable

from runtime.errors import StoreError
from runtime.store.faults import StoreTrouble, no_session
from runtime.stored import Holder, Lease, Leases, Store

_UNKNOWN = -1


class ResilientLeases:
    """The `Leases` port over one that may fail. A lease of fence 0 stands for what could not be taken: what
    is kept in memory is stored later if nobody else holds the session by then.
    """

    def __init__(self, store: Store, inner: Leases, report: Callable[[StoreTrouble], None]) -> None:
        self._store = store
        self._inner = inner
        self._report = report

    async def take(self, session_id: str, holder: Holder) -> Lease:
        """See the port."""
        try:
            return await self._inner.take(session_id, holder)
        except StoreTrouble as trouble:
            self._report(trouble)
        except StoreError:
            # One that is not stored yet is nobody else's.
            if await self._store.session(session_id) is None:
                raise no_session(session_id) from None
        return Lease(session_id, holder, 0, _UNKNOWN)

    async def release(self, lease: Lease) -> None:
        """See the port."""
        if lease.fence:
            await self._inner.release(lease)

    def is_lost(self, lease: Lease) -> bool:
        """See the port."""
        return bool(lease.fence) and self._inner.is_lost(lease)
