"""Connections for reading, one per read that runs at the same time. Knows no SQL and no trio."""

import sqlite3
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Readers:
    """A pool that grows with use. `run` blocks and belongs into a worker thread."""

    def __init__(self, open_reader: Callable[[], sqlite3.Connection]) -> None:
        self._open_reader = open_reader
        self._idle: list[sqlite3.Connection] = []
        self._busy = 0
        self._paused = False
        self._changed = threading.Condition()

    def run(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """The query's answer. A connection that failed is not used again."""
        with self._changed:
            self._changed.wait_for(lambda: not self._paused)
            self._busy += 1
            connection = self._idle.pop() if self._idle else None
        try:
            connection = connection or self._open_reader()
            answer = query(connection)
        except BaseException:
            self._leave(connection, keep=False)
            raise
        self._leave(connection, keep=True)
        return answer

    def pause(self) -> None:
        """Let running reads end, close every connection, hold new reads back until `resume`."""
        with self._changed:
            self._paused = True
            self._changed.wait_for(lambda: not self._busy)
            while self._idle:
                self._idle.pop().close()

    def resume(self) -> None:
        """Let reads run again."""
        with self._changed:
            self._paused = False
            self._changed.notify_all()

    def _leave(self, connection: sqlite3.Connection | None, *, keep: bool) -> None:
        # Closed before the pause may end: a late close could take a new file's log for its own.
        if connection is not None and not keep:
            connection.close()
        with self._changed:
            self._busy -= 1
            if connection is not None and keep:
                self._idle.append(connection)
            self._changed.notify_all()
