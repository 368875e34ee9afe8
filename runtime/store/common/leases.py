"""The rules of leases, the same for every store, and the leases that this process holds or lost.

A lease has a fence, a number that grows each time that the session changes hands. Whoever writes shows it,
so that one who was stopped for a while and lost the session cannot write into what another goes on with. The
rules are pure; what is held is used by two threads. Knows no store.
"""

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from runtime.conversation.lease import is_gone, named
from runtime.store.common.faults import text
from runtime.values.errors import LeaseLost, SessionBusy
from runtime.values.stored import Holder, Lease

LEASE_SECONDS = 20.0
"""How long a lease holds without a sign of life."""
RENEW_SECONDS = 6.0
FARTHEST_SECONDS = 24 * 3600.0
"""A lease that says that it ends later was never taken so: its row is damaged."""
_SEPARATOR = "\x1f"
_OWNER_FIELDS = 5
_PID_DIGITS = 9
_LAST_FENCE = 1 << 62
"""One more must still be a number to SQLite."""


class Held(NamedTuple):
    """A session's lease as it is stored. holder: None when it is free. expires_at: seconds since 1970."""

    fence: int
    holder: Holder | None
    expires_at: float


def live_holder(held: Held | None, now: float) -> Holder | None:
    """Who holds the session just now."""
    if held is None or held.holder is None or not now < held.expires_at <= now + FARTHEST_SECONDS:
        return None
    if is_gone(held.holder):
        return None
    return held.holder


def taken(
    session_id: str, held: Held | None, holder: Holder, now: float, seconds: float | None = None
) -> Held:
    """The lease when `holder` asks for it, for so many seconds, LEASE_SECONDS without. Raises SessionBusy."""
    refuse_others(session_id, held, holder.id, now)
    fence = 0 if held is None else held.fence
    if held is None or held.holder is None or held.holder.id != holder.id:
        fence += 1
    return Held(fence, holder, now + (LEASE_SECONDS if seconds is None else seconds))


def check(lease: Lease, held: Held | None, now: float) -> None:
    """Whether entries may be written under the lease. Raises LeaseLost, or SessionBusy if it was never had.

    A file that was repaired knows no leases any more; then nobody else can have it open.
    """
    if lease.fence == 0:
        refuse_others(lease.session_id, held, lease.holder.id, now)
    elif held is not None and held.fence != lease.fence:
        holder = held.holder
        raise LeaseLost(
            "This session went on in another place meanwhile"
            + (f": it is in use by {named(holder)}." if holder else "; the next prompt here reads it anew."),
            data={"kind": "session_taken_over", "sessionId": lease.session_id},
        )


def refuse_others(session_id: str, held: Held | None, mine: str, now: float) -> None:
    """Raise SessionBusy when someone else holds the session. mine: the id of who asks, '' for nobody."""
    holder = live_holder(held, now)
    if holder is not None and holder.id != mine:
        raise SessionBusy(
            f"This session is in use by {named(holder)}. It can be read here; to write, close it there.",
            data={
                "kind": "session_in_use",
                "sessionId": session_id,
                "holder": {"client": holder.client, "pid": holder.pid, "host": holder.host},
            },
        )


def held_in(row: Sequence[Any]) -> Held | None:
    """The lease of a row (fence, holder's id, owner, end). A row that says what cannot be is no lease: nobody
    may be shut out of a session for good by a damaged one.
    """
    fence, holder_id, owner, expires_at = row
    if type(fence) is not int or not 0 <= fence <= _LAST_FENCE:
        return None
    ends = expires_at if isinstance(expires_at, int | float) else 0.0
    fields = text(owner).split(_SEPARATOR)
    pid = fields[1] if len(fields) == _OWNER_FIELDS else ""
    if not holder_id or not (pid.isdecimal() and len(pid) <= _PID_DIGITS):
        return Held(fence, None, ends)
    client, _, *rest = fields
    return Held(fence, Holder(text(holder_id), client, int(pid), *rest), ends)


def owner_of(holder: Holder) -> str:
    """All of a holder but its id, as `held_in` reads it."""
    fields = (holder.client, str(holder.pid), holder.host, holder.machine, holder.started)
    return _SEPARATOR.join(field.replace(_SEPARATOR, " ") for field in fields)


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
