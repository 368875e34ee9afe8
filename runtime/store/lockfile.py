"""A file that tells other processes that a store is in use. Knows nothing of what is stored.

Everybody who has the store open holds a shared lock on `<store>.lock`; only one who gets it for
himself alone may put another file in the store's place. It is a file of its own, because closing any
descriptor of a database file would drop SQLite's own locks on it.
"""

import os
import sys
from pathlib import Path

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
