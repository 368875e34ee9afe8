"""The connections to a PostgreSQL server, made on demand and given up with it, and what a failure means.

Everything here blocks and belongs in a worker thread. Knows the driver, no session and no SQL of ours.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from runtime.store.common.faults import StoreTrouble, TroubleKind, closed, masked, scrubbed
from runtime.store.postgres.schema import Connection, prepare
from runtime.values.errors import StoreError

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


T = TypeVar("T")
Task = Callable[[Connection], T]

CONNECTIONS = 4
"""Connections of one process that work at the same time, beside those that renew leases and that listen."""
_IDLE_SECONDS = 60.0
_PATIENCE_SECONDS = 10.0
_UNREACHABLE_SECONDS = 1.0
"""How long a server that could not be reached is not tried again: work goes on without it meanwhile."""
_TRIES = 3

_DEFAULTS: Mapping[str, str | int] = {
    "application_name": "wholeturn",
    "connect_timeout": 5,
    "keepalives_idle": 20,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
_SETTINGS = (
    "SELECT set_config('statement_timeout', %s, false), set_config('lock_timeout', %s, false),"
    " set_config('idle_in_transaction_session_timeout', %s, false),"
    " set_config('synchronous_commit', 'on', false)"
)
_LOCK_SECONDS = 10.0
_CLOSING_SECONDS = 5.0

# Every failure is told by us, once.
logging.getLogger("psycopg").setLevel(logging.CRITICAL)


class Link:
    """A pool to one server. statement_seconds: how long one statement may take. idle_seconds: after how long
    the server gives up a transaction whose process stands still, and with it the locks that others wait for.

    Raises StoreError, StoreTrouble; an address that cannot be read shows at the first use.
    """

    def __init__(self, address: str, *, statement_seconds: float, idle_seconds: float) -> None:
        self.address = address
        lock_seconds = min(statement_seconds / 2, _LOCK_SECONDS)
        self._settings = [f"{int(1000 * one)}ms" for one in (statement_seconds, lock_seconds, idle_seconds)]
        self._pool: ConnectionPool[Connection] | None = None
        self._lock = threading.Lock()
        self._trouble: tuple[float, Exception] | None = None
        self._closed = False

    def run(self, task: Task[T]) -> T:
        """The task's answer; each of its statements is a transaction of its own.

        It is begun anew when the connection turns out to be cut: what it does must bear that.
        """
        for left in reversed(range(_TRIES)):
            pool = self._opened()
            connection: Connection | None = None
            try:
                with pool.connection() as connection:
                    return task(connection)
            except (psycopg.Error, UnicodeEncodeError) as error:
                if not self._shall_repeat(error, pool, connection) or not left:
                    raise translate(error, self.address) from error
        raise AssertionError("the last try returns or raises")

    def write(self, work: Task[T]) -> T:
        """The same, in one transaction."""

        def task(connection: Connection) -> T:
            with connection.transaction():
                return work(connection)

        return self.run(task)

    def connect(self) -> Connection:
        """A connection of one's own, beside the pool."""
        self._opened()
        try:
            return self._connect()
        except psycopg.Error as error:
            raise translate(error, self.address) from error

    def close(self) -> None:
        """Close all that is open; whoever still uses one loses it at the end."""
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close(timeout=_CLOSING_SECONDS)

    def _shall_repeat(
        self, error: Exception, pool: ConnectionPool[Connection], connection: Connection | None
    ) -> bool:
        if not isinstance(error, psycopg.Error):
            return False
        lost = connection is None or connection.closed or isinstance(error, PoolClosed | PoolTimeout)
        if lost or is_elsewhere(error):
            self._give_up(pool)
        return lost or is_passing(error)

    def _give_up(self, pool: ConnectionPool[Connection]) -> None:
        """Whatever cut one connection has cut the others too."""
        with self._lock:
            if self._pool is not pool:
                return
            self._pool = None
        # Not waited for: the pool's own thread may be in the middle of connecting.
        pool.close(timeout=0)

    def _opened(self) -> ConnectionPool[Connection]:
        with self._lock:
            if self._closed:
                raise closed()
            if self._pool is None:
                self._pool = self._open()
            return self._pool

    def _open(self) -> ConnectionPool[Connection]:
        if self._trouble is not None and time.monotonic() < self._trouble[0]:
            raise self._trouble[1].with_traceback(None)
        try:
            # The pool would only tell that it took too long: this one tells why.
            with self._connect() as connection:
                prepare(connection, masked(self.address))
            return self._new_pool()
        except (psycopg.Error, StoreError) as error:
            trouble = translate(error, self.address)
            self._trouble = time.monotonic() + _UNREACHABLE_SECONDS, trouble
            raise trouble from error

    def _new_pool(self) -> ConnectionPool[Connection]:
        return ConnectionPool(
            self._conninfo(),
            kwargs={"autocommit": True},
            configure=self._configure,
            min_size=0,
            max_size=CONNECTIONS + 1,
            max_idle=_IDLE_SECONDS,
            timeout=_PATIENCE_SECONDS,
            reconnect_timeout=_PATIENCE_SECONDS,
            num_workers=1,
            open=True,
        )

    def _connect(self) -> Connection:
        connection = psycopg.connect(self._conninfo(), autocommit=True)
        try:
            self._configure(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _configure(self, connection: Connection) -> None:
        connection.execute(_SETTINGS, self._settings)

    def _conninfo(self) -> str:
        given: dict[str, Any] = {**_DEFAULTS, **conninfo_to_dict(self.address), "client_encoding": "utf8"}
        return make_conninfo(**given)


def unreadable(address: str) -> str | None:
    """What is wrong with an address, without a password; None: nothing that shows."""
    try:
        conninfo_to_dict(address)
    except psycopg.Error as error:
        return scrubbed(" ".join(str(error).split()), address)
    return None
