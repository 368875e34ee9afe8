"""The agent as a child process: started, spoken to, heard, at last gone with its group. Knows no script."""

import os
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import trio

from acp_server.script.frames import MAX_LINE, MAX_WAITING, Inbox, Splitter, Stray, read_line

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
        while data := await stderr.receive_some(_CHUNK):
            kept = (kept + data)[-_STDERR_KEPT:]
            self.stderr = kept.decode("utf-8", "replace")
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
