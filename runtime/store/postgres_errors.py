"""What a failure of PostgreSQL means for who uses the store. Knows the driver's errors, no SQL."""

import psycopg

from runtime.errors import StoreError
from runtime.store.address import masked, scrubbed
from runtime.store.faults import StoreTrouble, TroubleKind

# SQLSTATE codes, by code or by class, https://www.postgresql.org/docs/current/errcodes-appendix.html.
_BY_STATE = {
    "25006": TroubleKind.READ_ONLY,  # read_only_sql_transaction: a standby, or set so
    "25P03": TroubleKind.UNREACHABLE,  # we stood still, and were given up
    "42501": TroubleKind.READ_ONLY,  # insufficient_privilege
    "53100": TroubleKind.FULL,  # disk_full
    "55P03": TroubleKind.LOCKED,  # lock_not_available: lock_timeout
    "57014": TroubleKind.FAILED,  # query_canceled: statement_timeout
}
_BY_CLASS = {
    "08": TroubleKind.UNREACHABLE,  # connection
    "28": TroubleKind.UNREACHABLE,  # who we say we are
    "3D": TroubleKind.UNREACHABLE,  # no such database
    "3F": TroubleKind.UNREACHABLE,  # no such schema
    "40": TroubleKind.LOCKED,  # rolled back for the sake of another one
    "53": TroubleKind.UNREACHABLE,  # too many connections, out of memory
    "55": TroubleKind.LOCKED,
    "57": TroubleKind.UNREACHABLE,  # shutting down, starting up
    "58": TroubleKind.FAILED,  # the system below
    "XX": TroubleKind.FAILED,
}
_DAMAGED = frozenset({"XX001", "XX002"})
_AGAIN = frozenset({"40001", "40P01"})
"""Serialization failure and deadlock: nothing was done, and the next try need not meet the same fate."""


def translate(error: Exception, address: str) -> Exception:
    """What the caller of the store is told, without a password; our own errors and plain bugs stay."""
    if isinstance(error, UnicodeEncodeError):
        return StoreError("the session store takes no text with lone surrogates")
    if not isinstance(error, psycopg.Error):
        return error
    said = scrubbed(" ".join(str(error).split()), address)
    kind = _kind_of(error)
    if kind is None:
        return StoreError(f"the session store refused the change: {said}")
    return StoreTrouble(kind, masked(address), said)


def is_passing(error: psycopg.Error) -> bool:
    """Whether the very same is worth another try at once."""
    return error.sqlstate in _AGAIN


def is_elsewhere(error: psycopg.Error) -> bool:
    """Whether the server is not the one to write to (any more): another connection may find that one."""
    return error.sqlstate == "25006"


def _kind_of(error: psycopg.Error) -> TroubleKind | None:
    state = error.sqlstate or ""
    if state in _DAMAGED:
        return TroubleKind.CORRUPT
    kind = _BY_STATE.get(state) or _BY_CLASS.get(state[:2])
    if kind is None and not state and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return TroubleKind.UNREACHABLE  # there was nobody to give a code
    return kind
