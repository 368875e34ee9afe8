"""One connection to a store file, ready for use. Knows pragmas and schema, no session and no thread."""

import codecs
import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from runtime.store.common.faults import StoreTrouble, TroubleKind, from_os, from_sqlite
from runtime.store.sqlite.queries import lenient
from runtime.store.sqlite.schema import SCHEMA_VERSION, is_foreign, migrate, read_version
from runtime.values.errors import StoreError
from runtime.values.file_access import NO_WAITING, DatabaseHeld, Hold, opened

# Checkpoints are made when nobody waits (see the writer); this is the bound for a writer that never rests.
_WAL_PAGES_AT_MOST = 2000
_HEADER = b"SQLite format 3\0"
_LOOK_BYTES = 4096
_IN_TEXT = frozenset(b"\t\n\v\f\r\x1b")
_NO_SIDE_FILES = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})


def open_for_writing(
    path: Path, *, timeout: float, in_use: Callable[[], bool] = lambda: False
) -> sqlite3.Connection:
    """Create or open the file and bring its schema up to date. timeout: seconds to wait for a lock.

    in_use: whether another process has an older file open, which then stays as it is.
    Raises StoreTrouble. A file of a newer version or of another program is left exactly as it is.
    """
    try:
        _make_private(path)
        if is_text(path):
            raise StoreTrouble(TroubleKind.FOREIGN, path)
        return _prepared(connect(path, timeout), path, in_use)
    except (sqlite3.Error, OSError) as error:
        raise translate(error, path) from error


def open_for_reading(path: Path, *, timeout: float) -> sqlite3.Connection:
    """A connection that cannot write, to a file that is there. Raises StoreTrouble."""
    try:
        if not path.exists():
            raise StoreTrouble(TroubleKind.UNREACHABLE, path, "no such file")
        if is_text(path):
            raise StoreTrouble(TroubleKind.FOREIGN, path)
        try:
            return _reading(connect(path, timeout), path)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _NO_SIDE_FILES or wal_has_content(path):
                raise
            # A read-only folder: SQLite cannot make its side files there, and with no write-ahead log
            # to honour the file can be read as it lies.
            return _reading(connect(path, timeout, "mode=ro&immutable=1"), path)
    except (sqlite3.Error, OSError) as error:
        raise translate(error, path) from error


class Connection(sqlite3.Connection):
    """A connection whose file nobody in this process opens by hand until it is closed."""

    hold: Hold | None = None

    def close(self) -> None:
        """Close it, and let the file go."""
        super().close()
        if self.hold is not None:
            self.hold.release()


def connect(path: Path, timeout: float, query: str = "") -> Connection:
    """Open a file that is there, as it is. query: of SQLite's address for it, such as "mode=ro".

    Raises sqlite3.Error, OSError.
    """
    address = f"{path.absolute().as_uri()}?{query}" if query else str(path)
    while True:
        hold = Hold(path)
        try:
            connection = sqlite3.connect(
                address,
                timeout=timeout,
                isolation_level=None,
                check_same_thread=False,
                uri=bool(query),
                factory=Connection,
            )
        except BaseException:
            hold.release()
            raise
        connection.hold = hold
        if hold.is_of(path):
            return connection
        connection.close()  # another file was put in its place meanwhile


def is_text(path: Path) -> bool:
    """Whether the file is a text: who names one as the store made a slip, and it is no damaged store.

    Raises OSError.
    """
    if not path.is_file():
        return False
    try:
        with opened(path, os.O_RDONLY | NO_WAITING) as descriptor:
            start = os.read(descriptor, _LOOK_BYTES)
    except DatabaseHeld:
        return False  # it was looked at before it was opened
    if not start or start.startswith(_HEADER) or any(byte < 32 and byte not in _IN_TEXT for byte in start):
        return False
    try:
        # The last character may be cut.
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return False
    return True


def wal_has_content(path: Path) -> bool:
    """Whether a write-ahead log lies beside the file: somebody has it open, or was killed."""
    try:
        return os.stat(f"{path}-wal").st_size > 0
    except OSError:
        return False


def translate(error: Exception, path: Path) -> Exception:
    """What the caller of the store is told; our own errors and plain bugs stay as they are."""
    if isinstance(error, sqlite3.DatabaseError) and type(error) in (
        sqlite3.DatabaseError,
        sqlite3.OperationalError,
    ):
        return from_sqlite(error, path)
    if isinstance(error, sqlite3.Error):
        return StoreError(f"the session store refused the change: {error}")
    if isinstance(error, UnicodeEncodeError):
        return StoreError("the session store takes no text with lone surrogates")
    return from_os(error, path) if isinstance(error, OSError) else error


def _make_private(path: Path) -> None:
    if path.exists():
        return
    # Made before SQLite does it, which would leave the mode to the umask; side files take it over.
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError), opened(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600):
        pass


def _prepared(connection: sqlite3.Connection, path: Path, in_use: Callable[[], bool]) -> sqlite3.Connection:
    # What a writer reads of a row is compared, never shown: a damaged one must not stop a change.
    connection.text_factory = lenient
    try:
        version = _refuse_strangers(connection, path)
        if 0 < version < SCHEMA_VERSION and in_use():
            raise StoreTrouble(TroubleKind.LOCKED, path, "its tables are of an older version that is running")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES_AT_MOST}")
        migrate(connection)
        if 0 < version < SCHEMA_VERSION:
            # The log now holds the whole file once more.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except BaseException:
        connection.close()
        raise
    return connection


def _reading(connection: sqlite3.Connection, path: Path) -> sqlite3.Connection:
    try:
        if _refuse_strangers(connection, path) != SCHEMA_VERSION:
            raise StoreTrouble(TroubleKind.UNREACHABLE, path, "its tables could not be brought up to date")
        connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse_strangers(connection: sqlite3.Connection, path: Path) -> int:
    """The file's version, if it is ours and known."""
    # One look: another process may be making the tables between two.
    connection.execute("BEGIN")
    try:
        version, foreign = read_version(connection), is_foreign(connection)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    if foreign:
        raise StoreTrouble(TroubleKind.FOREIGN, path)
    if version > SCHEMA_VERSION:
        raise StoreTrouble(TroubleKind.NEWER, path, f"schema {version}, this one knows {SCHEMA_VERSION}")
    return version
