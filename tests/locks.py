"""Who has a file locked, as another process sees it; a store that is asked about its file after each call.

A process cannot see its own locks; so a child that lives as long as the tests asks the system for it.
"""

import atexit
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache, wraps
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, cast

from runtime.values.stored import Store

_ASKER = """
import fcntl, os, struct, sys
LINUX = sys.platform.startswith("linux")
SHAPE = "hhqqi4x" if LINUX else "qqihh"
for line in sys.stdin:
    try:
        descriptor = os.open(line[:-1], os.O_RDWR)
    except FileNotFoundError:
        print(0, flush=True)
        continue
    wanted = (fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0) if LINUX else (0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET)
    found = struct.unpack(SHAPE, fcntl.fcntl(descriptor, fcntl.F_GETLK, struct.pack(SHAPE, *wanted)))
    os.close(descriptor)
    kind, holder = (found[0], found[4]) if LINUX else (found[3], found[2])
    print(0 if kind == fcntl.F_UNLCK else holder, flush=True)
"""


class LockAsker:
    """One child for many questions."""

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-S", "-c", _ASKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def holder(self, path: Path | str) -> int:
        """The process that has (a part of) the file locked; 0 when there is none, or no file."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(f"{path}\n")
        self._child.stdin.flush()
        return int(self._child.stdout.readline())

    def has(self, path: Path | str) -> bool:
        """Whether this process has the locks of a database that is open in it, on its log's index, too."""
        return [self.holder(name) for name in (path, f"{path}-shm")] == [os.getpid()] * 2

    def close(self) -> None:
        """End the child."""
        assert self._child.stdin is not None
        with self._child:
            self._child.stdin.close()


@cache
def lock_asker() -> LockAsker:
    """The one of this process."""
    asker = LockAsker()
    atexit.register(asker.close)
    return asker


class _Checked:
    """What lies behind it, and after each call that succeeded the question who has the file locked."""

    def __init__(self, inner: object, path: Path) -> None:
        self._inner = inner
        self._path = path

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name == "leases":
            return _Checked(found, self._path)
        return self._asking(found) if iscoroutinefunction(found) and name != "aclose" else found

    def _asking(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        async def asking(*given: object, **named: object) -> Any:
            answer = await call(*given, **named)
            free = [name for name in (self._path, f"{self._path}-shm") if not lock_asker().holder(name)]
            assert free == [], f"{call.__name__} left no lock on {free}"
            return answer

        return asking


def locked(make: Callable[[Path], Store], path: Path) -> Store:
    """A store over the file, which must have it locked after each call of the port."""
    return cast(Store, _Checked(make(path), path))
