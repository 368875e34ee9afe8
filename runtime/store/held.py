"""The leases that this process holds, and those that it lost. Used by two threads; knows no store."""

import threading

from runtime.stored import Lease


class HeldLeases:
    """What is to be renewed, and what was found to be gone."""

    def __init__(self) -> None:
        self._held: set[Lease] = set()
        self._lost: set[Lease] = set()
        self._lock = threading.Lock()

    def add(self, lease: Lease) -> None:
        """A lease was just taken."""
        with self._lock:
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

    def held(self) -> tuple[Lease, ...]:
        """All that are to be renewed."""
        with self._lock:
            return tuple(self._held)

    def lose(self, lost: set[Lease]) -> None:
        """A renewal found that others have them."""
        with self._lock:
            self._lost |= lost & self._held
            self._held -= lost
