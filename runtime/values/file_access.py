"""Files opened by hand, in a process that has databases open. Knows no tool, no SQL.

SQLite locks a database with POSIX locks, and those belong to the process: closing any descriptor of the file
drops them all, and the next program that ends then takes the write-ahead log away. So whoever connects to a
database holds it here, and whoever opens a file opens it here: a database that is held, and each of its side
files, is refused, whatever it is called. One that came to be held while a descriptor of it was open keeps
that descriptor until the last connection is closed.
"""

import errno
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO

Identity = tuple[int, int]
"""Device and number: what a file is, whatever it is called."""
StrPath = str | os.PathLike[str]

_SIDE_FILES = ("-wal", "-shm")
_ALWAYS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
NO_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
"""Flags for a name that need not be a regular file's: a pipe or a terminal there holds nobody up."""


class DatabaseHeld(OSError):
    """The file belongs to a database that this process has open."""

    def __init__(self, path: object) -> None:
        super().__init__(errno.EBUSY, "it belongs to a database that is in use here", str(path))


@dataclass(slots=True)
class _Database:
    paths: set[str] = field(default_factory=set)
    count: int = 0
    kept_open: list[int] = field(default_factory=list)


_changed = threading.Condition()
_databases: dict[Identity, _Database] = {}
_closing: list[Identity] = []


def identity(path: StrPath) -> Identity | None:
    """Which file the path names; None when there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


class Hold:
    """A connection's claim on a database file that is there: from before SQLite opens it until it is closed.

    Raises OSError.
    """

    def __init__(self, path: StrPath) -> None:
        found = os.stat(path)
        self._identity = found.st_dev, found.st_ino
        with _changed:
            # A descriptor that is just being closed was opened before anyone held the file.
            _changed.wait_for(lambda: self._identity not in _closing)
            database = _databases.setdefault(self._identity, _Database())
            # SQLite follows links, so the side files lie beside what they lead to.
            database.paths.add(os.path.realpath(path))
            database.count += 1
        self._released = False

    def is_of(self, path: StrPath) -> bool:
        """Whether the path names the file that is held."""
        return identity(path) == self._identity

    def release(self) -> None:
        """SQLite has closed the file. Once is enough."""
        with _changed:
            if self._released:
                return
            self._released = True
            database = _databases[self._identity]
            database.count -= 1
            if database.count == 0:
                for descriptor in _databases.pop(self._identity).kept_open:
                    os.close(descriptor)


def refuse_held(status: os.stat_result, path: object) -> None:
    """Raises DatabaseHeld when the file of that status may not be opened, or closed, by hand."""
    if _databases:
        with _changed:
            if _database_of((status.st_dev, status.st_ino)) is not None:
                raise DatabaseHeld(path)


def open_file(
    path: StrPath, flags: int = os.O_RDONLY, mode: int = 0o666, *, dir_fd: int | None = None
) -> int:
    """A descriptor of the file, for `close`. Raises OSError; DatabaseHeld for one of a database open here."""
    if _databases:
        _refuse_by_name(path, dir_fd)
    descriptor = os.open(path, flags | _ALWAYS, mode, dir_fd=dir_fd)
    try:
        # What was opened is what counts; a name may have changed its meaning since.
        refuse_held(os.fstat(descriptor), path)
    except DatabaseHeld:
        close(descriptor)
        raise
    return descriptor


def close(descriptor: int) -> None:
    """Close what was opened by hand, later if need be."""
    found = os.fstat(descriptor)
    what = found.st_dev, found.st_ino
    with _changed:
        database = _database_of(what)
        if database is not None:
            database.kept_open.append(descriptor)
            return
        _closing.append(what)
    try:
        # Not behind the lock: a file server may take its time.
        os.close(descriptor)
    finally:
        with _changed:
            _closing.remove(what)
            _changed.notify_all()


@contextmanager
def opened(
    path: StrPath, flags: int = os.O_RDONLY, mode: int = 0o666, *, dir_fd: int | None = None
) -> Iterator[int]:
    """A descriptor of the file. Raises as `open_file`."""
    descriptor = open_file(path, flags, mode, dir_fd=dir_fd)
    try:
        yield descriptor
    finally:
        close(descriptor)


@contextmanager
def reading(path: StrPath, flags: int = 0, *, dir_fd: int | None = None) -> Iterator[BinaryIO]:
    """The file as a stream of bytes. Raises as `open_file`."""
    with (
        opened(path, os.O_RDONLY | flags, dir_fd=dir_fd) as descriptor,
        open(descriptor, "rb", closefd=False) as file,
    ):
        yield file


@contextmanager
def writing(
    path: StrPath, flags: int = os.O_CREAT, mode: int = 0o666, *, dir_fd: int | None = None
) -> Iterator[BinaryIO]:
    """The file, made or emptied, as a stream of bytes. Raises as `open_file`."""
    with opened(path, os.O_WRONLY | flags, mode, dir_fd=dir_fd) as descriptor:
        # Here and not by a flag: what may not be touched is known once it is open.
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.ftruncate(descriptor, 0)
        with open(descriptor, "wb", closefd=False) as file:
            yield file


def read_text(path: StrPath, encoding: str = "utf-8", errors: str = "strict") -> str:
    """The whole file, its lines ended by a line feed. Raises as `open_file`, and UnicodeDecodeError."""
    with reading(path) as file:
        text = file.read().decode(encoding, errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _refuse_by_name(path: StrPath, dir_fd: int | None) -> None:
    try:
        status = os.stat(path, dir_fd=dir_fd)
    except (OSError, ValueError):
        return  # the opening tells it better
    refuse_held(status, path)


def _database_of(what: Identity) -> _Database | None:
    """The open database that the file belongs to."""
    known = _databases.get(what)
    if known is not None or not _databases:
        return known
    for database in _databases.values():
        for path in database.paths:
            if any(identity(path + suffix) == what for suffix in _SIDE_FILES):
                return database
    return None
