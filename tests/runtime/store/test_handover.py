"""A process that dies, or stands still, in the middle of a turn hands its session to another one.

HANDOVER_ROUNDS sets how often, HANDOVER_SEED repeats the moments. Each round one process works and two wait.
"""

import json
import logging
import multiprocessing
import os
import queue
import random
import signal
import threading
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
import trio

from runtime.store.postgres.store import PostgresStore
from runtime.values.stored import StoredEntry
from tests.runtime.store.handover_driver import DONE, run
from tests.runtime.store.helpers import record
from tests.support.postgres import address_of

ROUNDS = int(os.environ.get("HANDOVER_ROUNDS", "10"))
SEED = int(os.environ.get("HANDOVER_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
LEASE_SECONDS = 1.5
SLACK_SECONDS = 5.0
"""What a busy machine may add: a poll, a thread that is not scheduled."""
PATIENCE = 60.0
WAITING = 2


# Every process is a copy of one that has all modules loaded: a start costs nothing.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.runtime.store.handover_driver"])


class Worker:
    """A process, and what it said."""

    def __init__(
        self, arguments: tuple[str, str, float, str], heard: "queue.Queue[tuple[Worker, str, float]]"
    ) -> None:
        self.known = 0
        self.requests = 0
        self.took: int | None = None
        self._lines, out = PROCESSES.Pipe(duplex=False)
        self.process = PROCESSES.Process(target=run, args=(out, *arguments), daemon=True)
        self.process.start()
        out.close()
        self._heard = heard
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process's number."""
        assert self.process.pid is not None
        return self.process.pid

    def signal(self, which: signal.Signals) -> None:
        """Send it a signal; after a kill hear the rest of what it said."""
        os.kill(self.pid, which)
        if which is signal.SIGKILL:
            self.join()

    def join(self) -> None:
        """Until it has ended, and all was heard."""
        self.process.join(PATIENCE)
        self._reader.join(PATIENCE)

    def _read(self) -> None:
        with self._lines, suppress(EOFError, OSError):
            while True:
                word, _, number = self._lines.recv().partition(" ")
                if word == "known":
                    self.known = int(number)
                    self.requests += 1
                    continue
                if word == "took":
                    self.took = int(number)
                self._heard.put((self, word, time.monotonic()))


class Ring:
    """All who want the session."""

    def __init__(self, address: str, folder: Path, moments: random.Random) -> None:
        self._address, self._folder, self._moments = address, folder, moments
        self._heard: queue.Queue[tuple[Worker, str, float]] = queue.Queue()
        self.workers: list[Worker] = []
        self.begun: set[Worker] = set()
        self.ready: set[Worker] = set()
        self.holder: Worker | None = None
        self.took_at = 0.0

    def add(self) -> None:
        """One more. Half of them seem to be on another machine, where nobody can see that they died."""
        number = len(self.workers)
        machine = f"machine {number}" if self._moments.random() < 0.5 else ""
        arguments = (self._address, str(self._folder), LEASE_SECONDS, machine)
        self.workers.append(Worker(arguments, self._heard))
        self.begun.add(self.workers[-1])

    def fill(self) -> None:
        """As many as there should be."""
        while len(self.begun) + len(self.ready) < WAITING:
            self.add()

    def hear(self) -> str:
        """The next thing that one of them says."""
        worker, word, when = self._heard.get(timeout=PATIENCE)
        self.begun.discard(worker)
        match word:
            case "waiting":
                self.ready.add(worker)
            case "took":
                self.ready.discard(worker)
                self.holder, self.took_at = worker, when
            case _:
                # Also one that was only slow: a renewal that came too late.
                self.ready.discard(worker)
        return word

    def settle(self) -> Worker:
        """Until one works and another one waits; the one that works."""
        while self.holder is None or not self.ready:
            self.fill()
            self.hear()
        self.fill()
        return self.holder

    def hand_over(self) -> float:
        """Kill or stop the holder; the seconds until another one has the session."""
        holder = self.settle()
        self._let_work(holder)
        kills = self._moments.random() < 0.7
        began = time.monotonic()
        holder.signal(signal.SIGKILL if kills else signal.SIGSTOP)
        while self.holder is holder:
            self.hear()
        assert self.holder is not None
        took = self.took_at - began
        assert self.holder.took is not None
        if not kills:
            time.sleep(self._moments.uniform(0, 0.1))
            holder.signal(signal.SIGCONT)
        return took

    def _let_work(self, holder: Worker) -> None:
        """For a few steps, and a moment more."""
        steps, until = self._moments.randrange(12), time.monotonic() + PATIENCE
        while holder.requests < steps and holder.process.is_alive() and time.monotonic() < until:
            time.sleep(0.001)
        time.sleep(self._moments.uniform(0, 0.02))

    def finish(self) -> None:
        """Let the one that works come to an end, and all others after it."""
        (self._folder / "enough").touch()
        for worker in self.workers:
            worker.join()


@pytest.mark.system
def test_whoever_takes_over_goes_on_where_the_record_ends(tmp_path):
    address = address_of(tmp_path)
    trio.run(begin, address)
    ring = Ring(address, tmp_path, random.Random(SEED))
    times: list[float] = []
    try:
        for _ in range(ROUNDS):
            times.append(ring.hand_over())
        ring.settle()
        ring.finish()
        check(ring.workers, trio.run(transcript, address), (tmp_path / "carried-out").read_text())
        assert max(times) < LEASE_SECONDS + SLACK_SECONDS
    except BaseException as error:
        error.add_note(f"HANDOVER_SEED={SEED} repeats the moments")
        raise
    finally:
        for worker in ring.workers:
            worker.process.kill()
            worker.process.join()
    times.sort()
    told = f"{ROUNDS} rounds: {times[len(times) // 2]:.2f} s in the middle, {times[-1]:.2f} s at most"
    logging.getLogger("handover").info(told)


def check(workers: list[Worker], entries: list[StoredEntry], carried_out: str) -> None:
    """No step is lost, none is recorded twice, and none that was recorded was carried out again."""
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    assert len({entry.key for entry in entries}) == len(entries)
    recorded = [(entry.seq, step) for entry in entries if (step := step_of(entry)) is not None]
    assert [step for _, step in recorded] == list(range(1, len(recorded) + 1))
    assert len(recorded) > ROUNDS
    reached: dict[int, int] = {}
    for worker in workers:
        if worker.took is not None:
            before = [step for seq, step in recorded if seq <= worker.took]
            reached[worker.pid] = before[-1] if before else 0
    for line in carried_out.splitlines():
        step, pid = map(int, line.split())
        assert step > reached[pid], f"step {step} was recorded, and was carried out again by {pid}"
    assert {step for _, step in recorded} <= {int(line.split()[0]) for line in carried_out.splitlines()}
    assert max(worker.known for worker in workers) <= len(recorded), "a result that was acknowledged is gone"
    # Of two that began at the same entry, the first was stopped before it wrote anything.
    took = [(worker.took, worker.known, worker) for worker in workers if worker.took is not None]
    order = [worker for *_, worker in sorted(took, key=lambda one: one[:2])]
    for earlier, later in pairwise(order):
        assert earlier.known <= reached[later.pid], "a result that was acknowledged is gone"


def step_of(entry: StoredEntry) -> int | None:
    """The step whose result an entry records."""
    if entry.kind != "tool":
        return None
    found = DONE.search(json.loads(entry.payload)["text"])
    return int(found[1]) if found else None


async def begin(address: str) -> None:
    """The session that all want."""
    store = PostgresStore(address)
    await store.create_session(record("s1"))
    await store.aclose()


async def transcript(address: str) -> list[StoredEntry]:
    """All of it."""
    store = PostgresStore(address)
    found: list[StoredEntry] = []
    while page := await store.entries("s1", after=len(found), limit=1000):
        found += page
    await store.aclose()
    return found
