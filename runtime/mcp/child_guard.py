"""Sees to it that no child process outlives this one, not even when this one is killed.

Servers leave when their input ends, but one that hangs does not look at it. One small process watches over
all of them; it is there while there is a child to watch. Where process groups are not known (Windows) there
is none.
"""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import trio

WORKER = Path(__file__).with_name("guard_worker.py")


class Guard:
    """Watches over process groups. One for the whole program."""

    def __init__(self) -> None:
        self._groups: set[int] = set()
        self._worker: trio.Process | None = None
        self._lock = trio.Lock()

    async def watch(self, group: int) -> None:
        """From now on the group ends with this program, however that ends."""
        if sys.platform == "win32":
            return
        async with self._lock:
            if self._worker is None:
                self._worker = await _start()
            self._groups.add(group)
            await _tell(self._worker, f"+{group}\n")

    async def release(self, group: int) -> None:
        """The group has ended. With the last one the watching process ends, too."""
        async with self._lock:
            if group not in self._groups or self._worker is None:
                return
            self._groups.discard(group)
            await _tell(self._worker, f"-{group}\n")
            if not self._groups:
                worker, self._worker = self._worker, None
                await _end(worker)


async def _start() -> trio.Process:
    return await trio.lowlevel.open_process(
        [sys.executable, "-I", "-S", str(WORKER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )


async def _tell(worker: trio.Process, line: str) -> None:
    assert worker.stdin is not None  # piped above
    # Broken when somebody ended it: the children are still ended by this program.
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        await worker.stdin.send_all(line.encode())


async def _end(worker: trio.Process) -> None:
    assert worker.stdin is not None  # piped above
    await worker.stdin.aclose()
    await worker.wait()


GUARD = Guard()
