"""One store file as one process holds it: its lock, its connections for reading, its repair. Knows no SQL.

Everybody who has the store open holds a shared lock on `<store>.lock`; only one who gets it for
himself alone may put another file in the store's place. It is a file of its own, because closing any
descriptor of a database file would drop SQLite's own locks on it.
"""

import os
import sqlite3
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from runtime.store.common.faults import StoreTrouble, TroubleKind, from_os
from runtime.store.sqlite.connection import open_for_reading, open_for_writing, translate, wal_has_content
from runtime.store.sqlite.statements import check_file

if sys.platform != "win32":
    import fcntl

    def _try_lock(descriptor: int, *, alone: bool) -> bool:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            # A file system that knows no locks: go on, but never believe to be alone.
            return not alone
        return True

    def _is_taken(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            return True
        except OSError:
            return False  # nobody can be known to be there
        return False

else:  # pragma: no cover

    def _try_lock(descriptor: int, *, alone: bool) -> bool:
        # Without advisory locks nobody can know that he is alone: share always, replace never.
        return not alone

    def _is_taken(descriptor: int) -> bool:
        return False


class LockFile:
    """The lock of one store in one process. Raises OSError when the file cannot be made."""

    def __init__(self, store: Path) -> None:
        path = store.with_name(store.name + ".lock")
        self._descriptor = os.open(path, os.O_CREAT | os.O_RDWR | getattr(os, "O_CLOEXEC", 0), 0o600)

    def try_share(self) -> bool:
        """Hold it together with others. False: someone is alone with the store just now."""
        return _try_lock(self._descriptor, alone=False)

    def try_alone(self) -> bool:
        """Hold it alone. False: someone else has the store open, and a share held before may be gone."""
        return _try_lock(self._descriptor, alone=True)

    def others(self) -> bool:
        """Whether someone else is known to have the store open. If so, nothing is held any more: two who
        ask would else wait for each other. If not, it is held alone, as far as the file system can tell.
        """
        return _is_taken(self._descriptor)

    def close(self) -> None:
        """Let go."""
        os.close(self._descriptor)


# A whole check reads every page, about 2 ms a megabyte; beyond this only what is touched is found.
_CHECK_BYTES_AT_MOST = 64 << 20
_WRITER_WAITS_SECONDS = 0.1


class StoreFile:
    """Opens and repairs `path`. For one thread, except `open_reader`.

    patience: seconds that a reader waits for a lock. The writer hardly waits here, it tries again itself.
    """

    def __init__(self, path: Path, *, patience: float) -> None:
        # By whatever name it is opened: its lock, and what a repair makes, belong beside the file itself.
        self.path = Path(os.path.realpath(path)) if path.is_symlink() else path
        self._patience = patience
        self._lock: LockFile | None = None

    def open_writer(self) -> sqlite3.Connection:
        """The connection that writes. Raises StoreTrouble; CORRUPT means that `repair` may help."""
        try:
            lock = self._hold_lock()
            unclean = wal_has_content(self.path) and lock.try_alone()
            if not lock.try_share():
                raise StoreTrouble(
                    TroubleKind.LOCKED, self.path, "it is being repaired or brought up to date"
                )
        except OSError as error:
            raise from_os(error, self.path) from error
        connection = self._open(lock)
        if unclean and self.path.stat().st_size <= _CHECK_BYTES_AT_MOST:
            self._check(connection)
        return connection

    def open_reader(self) -> sqlite3.Connection:
        """A connection that reads. Raises StoreTrouble."""
        return open_for_reading(self.path, timeout=self._patience)

    def repair(self) -> str:
        """Replace the damaged file by a sound one and tell about it. No connection may be open here.

        Raises StoreTrouble when it cannot be done now; the file is then as before.
        """
        if self._lock is None or not self._lock.try_alone():
            self._share_again()
            detail = "another process has it open; it can be repaired when that one has ended"
            raise StoreTrouble(TroubleKind.CORRUPT, self.path, detail)
        from runtime.store.sqlite.repair import rebuild

        try:
            return rebuild(self.path, timeout=self._patience)
        except (OSError, sqlite3.Error) as error:
            raise translate(error, self.path) from error
        finally:
            self._share_again()

    def close(self) -> None:
        """Let other processes repair it."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _open(self, lock: LockFile) -> sqlite3.Connection:
        shared = False

        def in_use() -> bool:
            nonlocal shared
            shared = lock.others()
            return shared

        try:
            return open_for_writing(self.path, timeout=_WRITER_WAITS_SECONDS, in_use=in_use)
        finally:
            if not shared:
                lock.try_share()

    def _hold_lock(self) -> LockFile:
        if self._lock is None:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = LockFile(self.path)
        return self._lock

    def _share_again(self) -> None:
        if self._lock is not None:
            self._lock.try_share()

    def _check(self, connection: sqlite3.Connection) -> None:
        try:
            check_file(connection)
        except sqlite3.Error as error:
            connection.close()
            raise translate(error, self.path) from error


T = TypeVar("T")


class Readers:
    """A pool that grows with use. `run` blocks and belongs into a worker thread."""

    def __init__(self, open_reader: Callable[[], sqlite3.Connection]) -> None:
        self._open_reader = open_reader
        self._idle: list[sqlite3.Connection] = []
        self._busy = 0
        self._paused = False
        self._changed = threading.Condition()

    def run(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """The query's answer. A connection that failed is not used again."""
        with self._changed:
            self._changed.wait_for(lambda: not self._paused)
            self._busy += 1
            connection = self._idle.pop() if self._idle else None
        try:
            connection = connection or self._open_reader()
            answer = query(connection)
        except BaseException:
            self._leave(connection, keep=False)
            raise
        self._leave(connection, keep=True)
        return answer

    def pause(self) -> None:
        """Let running reads end, close every connection, hold new reads back until `resume`."""
        with self._changed:
            self._paused = True
            self._changed.wait_for(lambda: not self._busy)
            while self._idle:
                self._idle.pop().close()

    def resume(self) -> None:
        """Let reads run again."""
        with self._changed:
            self._paused = False
            self._changed.notify_all()

    def _leave(self, connection: sqlite3.Connection | None, *, keep: bool) -> None:
        # Closed before the pause may end: a late close could take a new file's log for its own.
        if connection is not None and not keep:
            connection.close()
        with self._changed:
            self._busy -= 1
            if connection is not None and keep:
                self._idle.append(connection)
            self._changed.notify_all()
