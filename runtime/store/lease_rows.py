"""Leases as the SQLite store keeps them: one row a session. Knows the table, not who asks."""

import sqlite3
from collections.abc import Sequence
from typing import Any

from runtime.store.leasing import Held, check, refuse_others
from runtime.stored import Holder, Lease

_HELD = "SELECT fence, holder, owner, expires_at FROM leases WHERE session = ?"
_SEPARATOR = "\x1f"


def check_in(connection: sqlite3.Connection, number: int, lease: Lease, now: float) -> None:
    """Whether a session may be written to under the lease; see `leasing.check`."""
    row = connection.execute(_HELD, (number,)).fetchone()
    check(lease, None if row is None else held_in(row), now)


def refuse_held(connection: sqlite3.Connection, number: int, session_id: str, now: float) -> None:
    """Raise SessionBusy when someone holds the session."""
    row = connection.execute(_HELD, (number,)).fetchone()
    refuse_others(session_id, None if row is None else held_in(row), "", now)


def held_in(row: Sequence[Any]) -> Held | None:
    """The lease of a row (fence, holder's id, owner, end)."""
    fence, holder_id, owner, expires_at = row
    if fence is None:
        return None
    if not holder_id:
        return Held(fence, None, expires_at)
    client, pid, *rest = owner.split(_SEPARATOR)
    return Held(fence, Holder(holder_id, client, int(pid), *rest), expires_at)


def owner_of(holder: Holder) -> str:
    """All of a holder but its id, as `held_in` reads it."""
    fields = (holder.client, str(holder.pid), holder.host, holder.machine, holder.started)
    return _SEPARATOR.join(field.replace(_SEPARATOR, " ") for field in fields)
