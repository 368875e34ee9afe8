"""How the next commit is made: at once in trio's own thread or not, and how long it waits for a lock.

Knows times, no file.

Two changes of thread cost about half a millisecond and throw the processor's caches away; a commit on a good
disk costs not much more. One that waits, for a slow disk or another program, would hold up all else, and
many in a row are cheaper together: both are left to the writer's thread.
"""

import time

QUICK_SECONDS = 0.003
"""How long a commit may hold up the loop."""
QUICK_IN_A_ROW = 8
"""So many commits must have been quick before one is made at once."""
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
        return self._quick >= QUICK_IN_A_ROW and time.monotonic() - self._last >= PAUSE_SECONDS

    def made(self, began: float) -> None:
        """A commit, or a try; began: when, of the monotonic clock."""
        self._last = time.monotonic()
        self._quick = self._quick + 1 if self._last - began < QUICK_SECONDS else 0

    def begun(self) -> None:
        """No other program is in the way."""
        self.patience = self._patience

    def given_up(self) -> None:
        """Another program's lock stands."""
        self.patience = min(self._patience, IMPATIENT_SECONDS)

    def failed(self) -> None:
        """The thread is to see what is wrong."""
        self._quick = 0
