"""Leases as the SQLite store keeps them: one row a session. Knows the table, not who asks."""

import sqlite3
from collections.abc import Sequence
from typing import Any

from runtime.store.cells import text
from runtime.store.leasing import Held, check, refuse_others
from runtime.stored import Holder, Lease

_HELD = "SELECT fence, holder, owner, expires_at FROM leases WHERE session = ?"
_SEPARATOR = "\x1f"
_OWNER_FIELDS = 5
_PID_DIGITS = 9
_LAST_FENCE = 1 << 62
"""One more must still be a number to SQLite."""


def check_in(connection: sqlite3.Connection, number: int, lease: Lease, now: float) -> None:
    """Whether a session may be written to under the lease; see `leasing.check`."""
    row = connection.execute(_HELD, (number,)).fetchone()
    check(lease, None if row is None else held_in(row), now)


def refuse_held(connection: sqlite3.Connection, number: int, session_id: str, now: float) -> None:
    """Raise SessionBusy when someone holds the session."""
    row = connection.execute(_HELD, (number,)).fetchone()
    refuse_others(session_id, None if row is None else held_in(row), "", now)


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
