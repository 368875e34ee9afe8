"""How the next commit is made: at once in trio's own thread or not, and how long it waits for a lock.

Knows times, no file.

Two changes of thread cost about half a millisecond and throw the processor's caches away; a commit on a good
disk costs not much more. One that waits, for a slow disk or another program, would hold up all else, and
many in a row are cheaper together: both are left to the writer's thread.
"""

import time

QUICK_SECONDS = 0.003
"""How long a commit may hold up the loop, as a rule."""
SLOW_SECONDS = 0.1
"""After one such commit it is all as at the beginning."""
ENOUGH, MOST, SLOW_ONE = 8, 16, 4
"""Each quick commit counts one, up to the most; a slower one takes back so many. With enough of them the next
is made at once.
"""
PAUSE_SECONDS = 0.003
"""Since the last commit."""
IMPATIENT_SECONDS = 0.1


class Pace:
    """How the last commits went. For whoever holds the writer's connection, except `is_easy`.

    patience: seconds that a commit waits for another program's lock. As long as the lock stands, later ones
    wait hardly at all.
    """

    def __init__(self, patience: float) -> None:
        self.patience = self._patience = patience
        self._quick = 0
        self._last = 0.0

    def is_easy(self) -> bool:
        """Whether the next commit can be expected to be quick, and to be the only one."""
        return self._quick >= ENOUGH and time.monotonic() - self._last >= PAUSE_SECONDS

    def made(self, began: float) -> None:
        """A commit, or a try; began: when, of the monotonic clock."""
        self._last = time.monotonic()
        taken = self._last - began
        if taken < QUICK_SECONDS:
            self._quick = min(self._quick + 1, MOST)
        else:
            self._quick = max(self._quick - SLOW_ONE, 0) if taken < SLOW_SECONDS else 0

    def begun(self) -> None:
        """No other program is in the way."""
        self.patience = self._patience

    def given_up(self) -> None:
        """Another program's lock stands."""
        self.patience = min(self._patience, IMPATIENT_SECONDS)

    def failed(self) -> None:
        """The thread is to see what is wrong."""
        self._quick = 0
