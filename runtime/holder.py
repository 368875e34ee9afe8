"""Who holds a session: this process as others will know it, and whether another one is still alive.

Knows the operating system, no store. A process id means something only on one machine and, on Linux, in one
namespace of process ids; elsewhere nothing is known, and a lease has to run out.
"""

import os
import sys
from functools import cache

from runtime.file_access import read_text
from runtime.ids import new_id
from runtime.stored import Holder

_DEAD_STATES = "ZXx"


def new_holder(client: str = "") -> Holder:
    """A holder in this process. client: the program in front of it, as it calls itself."""
    pid = os.getpid()
    return Holder(new_id(), client, pid, _host(), _machine(), _started(pid))


def is_gone(holder: Holder) -> bool:
    """Whether the holder's process has ended for certain."""
    if sys.platform == "win32" or not holder.machine or holder.machine != _machine():
        return False
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False  # it is there and belongs to somebody else
    started = _started(holder.pid)
    # Another start means that the number was given to another process since.
    return bool(holder.started and started != holder.started)


def named(holder: Holder) -> str:
    """The holder in a few words for a person."""
    return f"{holder.client or 'another window'} (process {holder.pid} on {holder.host or 'this computer'})"


@cache
def _host() -> str:
    return os.uname().nodename if hasattr(os, "uname") else ""


@cache
def _machine() -> str:
    """The running system and the namespace that our process id belongs to."""
    try:
        boot = read_text("/proc/sys/kernel/random/boot_id").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return _host()


def _started(pid: int) -> str:
    """When the process began, in a unit of the system's own; '' when that, or the process, is not known."""
    try:
        # The name, in brackets, may hold anything.
        state, *fields = read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    except (OSError, ValueError):
        return ""
    return "" if state in _DEAD_STATES else fields[18]
