"""Processes that a command started and that would outlive it: found and killed. Blocks; call it in a thread.

A process group covers what a shell starts. A process that made a group of its own still belongs to the
command's session, and one that left even that carries the variable that the command was started with.
Where there is no /proc, the group is all there is.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress

from runtime.values.file_access import reading

MARK = "WHOLETURN_CALL"
"""Names the call in the environment of its processes."""
_ROUNDS = 5


def kill_group(leader: int, number: int = signal.SIGKILL) -> bool:
    """Signal the group of this leader; False when nothing is left of it."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def kill_left(session: int, mark: str) -> bool:
    """Kill the group and what else belongs to the session, or (mark not '') carries the mark.

    True when something was running.
    """
    found = False
    for _ in range(_ROUNDS):
        left = [pid for pid in _processes() if _in_session(pid, session) or (mark and _has_mark(pid, mark))]
        # For where there is no /proc. Its answer means little: the dead that nobody asked about count too.
        kill_group(session)
        if not left:
            break
        found = True
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
    return found


def _processes() -> Iterator[int]:
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    yield from (int(name) for name in names if name.isdigit() and int(name) != os.getpid())


def _in_session(pid: int, session: int) -> bool:
    # What follows the name, which may hold anything, begins behind the last bracket: state, parent, group,
    # session. A dead one that nobody has asked about yet is no longer running.
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return len(fields) > 3 and fields[0] not in (b"Z", b"X") and fields[3] == str(session).encode()


def _has_mark(pid: int, mark: str) -> bool:
    return f"{MARK}={mark}".encode() in _read(f"/proc/{pid}/environ").split(b"\0")


def _read(path: str) -> bytes:
    try:
        with reading(path) as file:
            return file.read()
    except OSError:
        return b""
