"""The agent as a child process, and what came from it: started, spoken to, heard, gone with its group.

Its lines become frames and wait in a queue until a step looks at them. Knows no script.
"""

import json
import os
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import trio

MAX_LINE = 1024 * 1024 * 1024
MAX_WAITING = 2 * MAX_LINE
"""Bytes that may wait unread before the agent is taken to have run wild."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A line of JSON. size: bytes."""

    value: object
    size: int


@dataclass(frozen=True, slots=True)
class Stray:
    """A line that is no JSON, or more than we take: a fault of the agent. text: the beginning of it."""

    text: str
    problem: str


def read_line(line: bytes) -> Frame | Stray:
    """The frame of a line, strictly: UTF-8 without a mark, one JSON value, no NaN."""
    try:
        text = line.decode()
        return Frame(json.loads(text, parse_constant=_refuse), len(line))
    except UnicodeDecodeError:
        problem = "it is not UTF-8"
    except RecursionError:
        problem = "it is nested too deeply"
    except ValueError as error:
        problem = str(error)
    return Stray(line[:400].decode("utf-8", "replace"), problem)


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


class Splitter:
    """Bytes to lines. Blank lines are left out, as a client would."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that this piece completes."""
        *ended, rest = data.split(b"\n")
        for line in ended:
            whole = b"".join((*self._pieces, line))
            self._pieces, self._size = [], 0
            if whole.strip():
                yield whole
        if rest:
            self._pieces.append(rest)
            self._size += len(rest)

    def rest(self) -> bytes:
        """What stands behind the last newline; it is forgotten."""
        rest, self._pieces, self._size = b"".join(self._pieces), [], 0
        return rest

    @property
    def waiting(self) -> int:
        """Bytes held."""
        return self._size


class Inbox:
    """Frames that wait to be looked at. After `end` there come no more."""

    def __init__(self) -> None:
        self._items: list[Frame | Stray] = []
        self._taken = 0
        self._changed = trio.Event()
        self.size = 0
        self.ended = False

    def put(self, item: Frame | Stray) -> None:
        """Add what came."""
        self._items.append(item)
        self.size += item.size if isinstance(item, Frame) else len(item.text)
        self._wake()

    def end(self) -> None:
        """The agent's stdout is at its end."""
        self.ended = True
        self._wake()

    async def peek(self, ahead: int = 0) -> Frame | Stray | None:
        """What comes next, or `ahead` frames later; left in its place. None when there will be none."""
        while self._taken + ahead >= len(self._items):
            if self.ended:
                return None
            await self._changed.wait()
        await trio.lowlevel.checkpoint()
        return self._items[self._taken + ahead]

    def take(self) -> None:
        """Take out what `peek` gave."""
        item = self._items[self._taken]
        self.size -= item.size if isinstance(item, Frame) else len(item.text)
        self._taken += 1
        # Now and then the space in front is given back, not each time: that would cost a move of all.
        if self._taken > 1000:
            del self._items[: self._taken]
            self._taken = 0

    def waiting(self) -> list[Frame | Stray]:
        """All that was not taken."""
        return self._items[self._taken :]

    def _wake(self) -> None:
        changed, self._changed = self._changed, trio.Event()
        changed.set()


_CHUNK = 1024 * 1024
_STDERR_KEPT = 64 * 1024
_REMEMBERED = 8
_SHOWN = 400

Trace = Callable[[str], None]


class Agent:
    """One run of the agent's command."""

    def __init__(self, process: trio.Process, trace: Trace) -> None:
        self._process = process
        self._trace = trace
        self._heard = trio.CancelScope()
        self._overheard = trio.Event()
        self._killed = False
        self.inbox = Inbox()
        self.last: deque[str] = deque(maxlen=_REMEMBERED)
        """The last lines in both directions, shortened."""
        self.stderr = ""

    @property
    def status(self) -> int | None:
        """Its exit status when it has ended; minus the signal's number when it was killed."""
        return self._process.returncode

    async def listen(self) -> None:
        """Take in what it says, until `finish`. Runs beside the rest."""
        with self._heard:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._hear)
                nursery.start_soon(self._overhear)

    async def send(self, data: bytes) -> None:
        """Write to its stdin. Raises trio.BrokenResourceError or ClosedResourceError when it is closed."""
        self._remember("->", data[:_SHOWN].decode("utf-8", "replace").rstrip("\n"), len(data))
        stdin = self._process.stdin
        assert stdin is not None
        await stdin.send_all(data)

    async def close(self) -> None:
        """Close its stdin."""
        self._remember("->", "(closed)", 0)
        assert self._process.stdin is not None
        await self._process.stdin.aclose()

    def kill(self, number: int) -> None:
        """Send the process itself a signal."""
        self._remember("->", f"(signal {number})", 0)
        self._killed = True
        self._process.send_signal(number)

    async def wait(self) -> int:
        """Wait for its end."""
        return await self._process.wait()

    async def finish(self, grace: float) -> None:
        """End it: stdin closed, `grace` seconds to end by itself, then its group is killed."""
        with trio.CancelScope(shield=True):
            assert self._process.stdin is not None
            await trio.aclose_forcefully(self._process.stdin)
            with trio.move_on_after(grace):
                await self._process.wait()
            self._killed = self._killed or self.status is None
            # Its children too, and also when it went by itself and left them.
            self._kill_group()
            with trio.move_on_after(grace):
                await self._process.wait()
                while not self.inbox.ended:
                    await self.inbox.peek(len(self.inbox.waiting()))
                # Its last words too: they say best why it ended.
                await self._overheard.wait()
            self._heard.cancel()

    def _kill_group(self) -> None:
        try:
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        except (ProcessLookupError, PermissionError):
            # Nobody is left in it.
            pass

    async def _hear(self) -> None:
        stdout, splitter = self._process.stdout, Splitter()
        assert stdout is not None
        try:
            while data := await stdout.receive_some(_CHUNK):
                for line in splitter.feed(bytes(data)):
                    self._put(line)
                if splitter.waiting > MAX_LINE or self.inbox.size > MAX_WAITING:
                    self.inbox.put(Stray("", "the agent sends without end"))
                    return
            rest = splitter.rest().strip()
            # A process that was killed may leave half a line behind; that is no fault of its own.
            if rest and not self._killed:
                text = rest[:_SHOWN].decode("utf-8", "replace")
                self.inbox.put(Stray(text, "it does not end with a line feed"))
        finally:
            self.inbox.end()
            await trio.aclose_forcefully(stdout)

    def _put(self, line: bytes) -> None:
        self._remember("<-", line[:_SHOWN].decode("utf-8", "replace"), len(line))
        self.inbox.put(read_line(line))

    async def _overhear(self) -> None:
        stderr, kept = self._process.stderr, b""
        assert stderr is not None
        try:
            while data := await stderr.receive_some(_CHUNK):
                kept = (kept + data)[-_STDERR_KEPT:]
                self.stderr = kept.decode("utf-8", "replace")
        finally:
            self._overheard.set()
            await trio.aclose_forcefully(stderr)

    def _remember(self, arrow: str, text: str, size: int) -> None:
        line = f"{arrow} {text}" + (f"… ({size:,} bytes)" if size > _SHOWN else "")
        self.last.append(line)
        self._trace(line)


async def start(command: Sequence[str], environment: Mapping[str, str], trace: Trace) -> Agent:
    """Start the command here, in a process group of its own. Raises OSError when it cannot."""
    process = await trio.lowlevel.open_process(
        list(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(environment),
        start_new_session=True,
    )
    return Agent(process, trace)
