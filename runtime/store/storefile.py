"""One store file as one process holds it: its lock, its connections, its repair. Knows no SQL, no thread."""

import os
import sqlite3
from importlib import import_module
from pathlib import Path

from runtime.store.changes import check
from runtime.store.connection import open_for_reading, open_for_writing, translate, wal_has_content
from runtime.store.faults import StoreTrouble, TroubleKind, from_os
from runtime.store.lockfile import LockFile

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
        try:
            told: str = import_module("runtime.store.salvage").rebuild(self.path, timeout=self._patience)
            return told
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
            check(connection)
        except sqlite3.Error as error:
            connection.close()
            raise translate(error, self.path) from error
