"""The one thread that writes: group commit, and repair when the file turns out damaged.

Knows transactions and jobs, not what the jobs change. No disk is waited for in any other thread: one that
stands still holds up the writer's alone.
"""

import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import trio

from runtime.store.common.faults import StoreTrouble, TroubleKind
from runtime.store.sqlite.connection import translate
from runtime.store.sqlite.leases import Pulse
from runtime.store.sqlite.statements import Work, nothing
from runtime.store.sqlite.writer_jobs import Job, Upkeep

_GROUP_AT_MOST = 256
_PAUSE_SECONDS = 0.005
_IMPATIENT_SECONDS = 0.1
_HEALTHY_AFTER = frozenset({TroubleKind.LOCKED, TroubleKind.FULL})

GONE = "it was removed or replaced while it was in use"
Identity = tuple[int, int] | None


def identity(path: Path) -> Identity:
    """Which file the path names: device and number; None when there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class Opened(NamedTuple):
    """The file while it is open, and which file it was."""

    connection: sqlite3.Connection
    identity: Identity


class Writer:
    """Carries out jobs in order; all that wait are committed together.

    open_file: gives the connection. repair: puts a sound file in a damaged one's place. Both raise
    StoreTrouble and run in the writer's thread. patience: seconds that the first job behind another
    program's lock waits; as long as the lock stands, later ones wait hardly at all. pulse: of the leases.
    """

    def __init__(
        self,
        path: Path,
        *,
        open_file: Callable[[], sqlite3.Connection],
        repair: Callable[[], None],
        patience: float,
        pulse: Pulse,
    ) -> None:
        self._path = path
        self._open_file = open_file
        self._repair = repair
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._opened: Opened | None = None
        self._damaged = False
        self._upkeep = Upkeep(pulse)
        self._patience = self._left = patience

    # ------------------------------------------------------------ in trio's thread

    @property
    def _connection(self) -> sqlite3.Connection | None:
        return None if self._opened is None else self._opened.connection

    @property
    def is_open(self) -> bool:
        """Whether the file has been opened for writing."""
        return self._connection is not None

    async def run(self, work: Work) -> None:
        """Have it done and durable. Raises StoreError."""
        await trio.lowlevel.checkpoint_if_cancelled()
        job = Job(work)
        job.expect()
        self._send(job)
        await job.wait()

    def warm_up(self) -> None:
        """Begin to open the file; a failure shows at the first use."""
        self._send(Job(nothing))

    def wipe_log(self) -> None:
        """Leave nothing in the log of what was removed, as soon as nobody waits."""
        self._upkeep.wipe_log()
        self._send(Job(nothing))

    async def aclose(self) -> None:
        """Finish what was sent, close the file, end the thread. Cancelled it is left to do so."""
        if self._thread is not None and self._thread.is_alive():
            self._queue.put(None)
            await trio.to_thread.run_sync(self._thread.join, abandon_on_cancel=True)

    def _send(self, job: Job) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="wholeturn-store", daemon=True)
            self._thread.start()
        self._queue.put(job)

    # ------------------------------------------------------------ in the writer's thread

    def _serve(self) -> None:
        ending = False
        while not ending:
            group, ending = self._next_group()
            if group:
                for job, failure in self._commit(group):
                    job.finish(failure)
        self._drop_connection()

    def _next_group(self) -> tuple[list[Job], bool]:
        group: list[Job] = []
        item = self._next_item()
        while item is not None:
            group.append(item)
            if len(group) == _GROUP_AT_MOST or self._queue.empty():
                return group, False
            item = self._queue.get()
        return group, True

    def _next_item(self) -> Job | None:
        while True:
            try:
                return self._queue.get(timeout=self._upkeep.rest())
            except queue.Empty:
                here = self._opened is not None and identity(self._path) == self._opened.identity
                self._upkeep.use_rest(self._connection if here else None)

    def _commit(self, group: Sequence[Job]) -> list[tuple[Job, Exception | None]]:
        trouble = self._begin(group)
        jobs = [job for job in group if job.claim()]
        failure = trouble or self._carry_out([job.work for job in jobs])
        # In a group one job's failure undoes all: each then gets a transaction of its own. After damage was
        # found there is one more try on the repaired file.
        if trouble is None and failure is not None and (len(jobs) > 1 or self._damaged):
            return [(job, self._begin([job]) or self._carry_out([job.work])) for job in jobs]
        return [(job, failure) for job in jobs]

    def _begin(self, group: Sequence[Job]) -> Exception | None:
        """Start a transaction, waiting for another program's lock as long as patience lasts."""
        deadline = time.monotonic() + self._left
        while (failure := self._try_to_begin()) is not None:
            if not (isinstance(failure, StoreTrouble) and failure.kind is TroubleKind.LOCKED):
                return failure
            if time.monotonic() > deadline or all(job.withdrawn for job in group):
                self._left = min(self._patience, _IMPATIENT_SECONDS)
                return failure
            time.sleep(_PAUSE_SECONDS)
        self._left = self._patience
        return None

    def _try_to_begin(self) -> Exception | None:
        if not self._damaged:
            failure = self._open_and_begin()
            if not self._damaged:
                return failure
        return self._mend() or self._open_and_begin()

    def _open_and_begin(self) -> Exception | None:
        try:
            if self._opened is None:
                self._opened = Opened(self._open_file(), identity(self._path))
            elif identity(self._path) != self._opened.identity:
                # What is written to a file without a name is gone when the program ends, and a new file
                # would know none of the sessions: the changes are better kept by whoever sent them.
                return StoreTrouble(TroubleKind.UNREACHABLE, self._path, GONE)
            self._opened.connection.execute("BEGIN IMMEDIATE")
        except Exception as error:  # noqa: BLE001 - a thread that died would leave every caller waiting
            return self._after(error)
        return None

    def _mend(self) -> Exception | None:
        try:
            self._repair()
        except Exception as error:  # noqa: BLE001 - as above
            return translate(error, self._path)
        self._damaged = False
        return None

    def _carry_out(self, works: Sequence[Work]) -> Exception | None:
        connection = self._connection
        assert connection is not None, "a transaction was begun"
        try:
            for work in works:
                work(connection)
            self._upkeep.go_along(connection)
            connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - as above; the caller hears of it
            return self._after(error)
        self._upkeep.committed()
        return None

    def _after(self, error: Exception) -> Exception:
        """What the caller is told; leaves no transaction open and no doubtful connection in use."""
        failure = translate(error, self._path)
        if self._connection is not None and self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
        if isinstance(failure, StoreTrouble) and failure.kind not in _HEALTHY_AFTER:
            self._damaged = self._damaged or failure.kind is TroubleKind.CORRUPT
            self._drop_connection()
        return failure

    def _drop_connection(self) -> None:
        connection = self._connection
        self._opened = None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()
