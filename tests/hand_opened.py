"""Sees when a process opens a file of a database by hand that SQLite has open in it. Standard library only.

Closing such a descriptor drops SQLite's locks. An audit hook is told of each file that Python code opens, and
of none that SQLite opens. Of a name that is relative to a folder's descriptor it is told no folder; such a
name counts when it is the name of a database that is open.
"""

import os
import sys
from collections.abc import Callable

SIDE_FILES = ("", "-wal", "-shm")
_O_PATH = getattr(os, "O_PATH", 0)


class Watch:
    """tell: gets a sentence with the place in the code, while the file is being opened."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._known: set[str] = set()

    def install(self) -> None:
        """From now on; there is no way back."""
        sys.addaudithook(self.hear)

    def forget(self) -> None:
        """The databases of another test."""
        self._known.clear()

    def hear(self, event: str, given: tuple[object, ...]) -> None:
        """An event of the interpreter."""
        if event == "sqlite3.connect":
            self._note(given[0])
        elif event == "open" and self._known:
            self._look(given)

    def _note(self, database: object) -> None:
        name = os.fsdecode(database) if isinstance(database, str | bytes | os.PathLike) else ""
        if name.startswith("file:"):
            from urllib.parse import unquote, urlsplit  # each process of a test pays for what stands above

            name = unquote(urlsplit(name).path)
        if name not in ("", ":memory:"):
            self._known.add(os.path.realpath(name))

    def _look(self, given: tuple[object, ...]) -> None:
        path, _, flags = given
        if (isinstance(flags, int) and flags & _O_PATH) or not isinstance(path, str | bytes | os.PathLike):
            return
        name = os.fsdecode(path)
        database = next((one for one in tuple(self._known) if is_part(name, one)), None)
        if database is not None and is_open(database):
            import traceback

            stack = "".join(traceback.format_stack(sys._getframe(2), limit=8))
            self._tell(f"{name} was opened by hand while {database} was open:\n{stack}")


def is_part(name: str, database: str) -> bool:
    """Whether the name leads to the database or one of its side files."""
    parts = [f"{database}{suffix}" for suffix in SIDE_FILES]
    try:
        found = os.stat(name)
    except (OSError, ValueError):
        return not os.path.isabs(name) and os.path.basename(name) in map(os.path.basename, parts)
    return any(is_same(found, part) for part in parts)


def is_same(found: os.stat_result, path: str) -> bool:
    """Whether the path leads to that file."""
    try:
        return os.path.samestat(found, os.stat(path))
    except OSError:
        return False


def is_open(path: str) -> bool:
    """Whether the process has a descriptor of the file."""
    try:
        status = os.stat(path)
    except OSError:
        return False
    for descriptor in os.listdir("/dev/fd"):
        try:
            found = os.fstat(int(descriptor))
        except OSError:
            continue
        if os.path.samestat(status, found):
            return True
    return False
