"""Processes without the cost of a start: copies of one that has all modules loaded. Needs fork.

The copy is given its own arguments, folder, environment and streams, and then does what
`python -m acp_server` does, or calls a function. A kill, an end, a lock and a descriptor are as real as those
of any other process.
"""

import gc
import io
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import trio

from acp_server.start.early_imports import pieces

ROOT = Path(__file__).resolve().parent.parent
COMMAND = "acp_server.__main__:main"
LOADED = (
    *("acp_server.__main__", "acp_server.cli.main", "acp_server.cli.run", "acp_server.cli.sessions"),
    *("acp_server.cli.doctor", "runtime.store.opening", "runtime.store.sqlite.store"),
    *("runtime.store.sqlite.search_index", "runtime.store.resilient.store"),
)
_LONGEST = 1 << 18


class WarmProcess:
    """One of them, with the face of a `trio.Process`: its status comes through a pipe of its own."""

    def __init__(self, pid: int, status: int, stdin: int | None, stdout: int | None) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin = None if stdin is None else trio.lowlevel.FdStream(stdin)
        self.stdout = None if stdout is None else trio.lowlevel.FdStream(stdout)
        self._status = trio.lowlevel.FdStream(status)
        self._waiting = trio.Lock()

    async def wait(self) -> int:
        """Its exit status; negative when a signal ended it."""
        async with self._waiting:
            if self.returncode is None:
                self.returncode = int(await self._status.receive_some(64))
                await self._status.aclose()
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless its end is known."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)


class Forker:
    """The process that is copied."""

    def __init__(self, modules: Sequence[str] = LOADED) -> None:
        self._ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "tests.warm", str(theirs.fileno()), *modules]
        with theirs:
            self._process = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()])
        self._asking = threading.Lock()

    def start(
        self,
        *arguments: str,
        cwd: Path,
        env: Mapping[str, str],
        stderr: int,
        stdin: bool = True,
        function: str = COMMAND,
    ) -> WarmProcess:
        """A new process. function: `module:name`, called without arguments. stdin: whether it has any."""
        child_in, our_in = os.pipe() if stdin else (os.open(os.devnull, os.O_RDONLY), None)
        our_out, child_out = os.pipe()
        status, child_status = os.pipe()
        asked = {"arguments": arguments, "cwd": str(cwd), "env": dict(env), "function": function}
        given = [child_in, child_out, stderr, child_status]
        with self._asking:
            socket.send_fds(self._ours, [json.dumps(asked).encode() + b"\n"], given)
            answer = self._ours.recv(64)
        for descriptor in (child_in, child_out, child_status):
            os.close(descriptor)
        assert answer, "the process that is copied has ended"
        return WarmProcess(int(answer), status, our_in, our_out)

    def close(self) -> None:
        """End it; the copies live on."""
        self._ours.close()
        self._process.wait(20)


async def output_of(process: WarmProcess, seconds: float) -> tuple[int, str]:
    """Exit status, and all that it says."""
    said = b""
    assert process.stdout is not None
    with trio.fail_after(seconds):
        async with process.stdout:
            while data := await process.stdout.receive_some(1 << 16):
                said += data
        return await process.wait(), said.decode()


@contextmanager
def forker(modules: Sequence[str] = LOADED) -> Iterator[Forker]:
    """One for as long as the block lasts."""
    made = Forker(modules)
    try:
        yield made
    finally:
        made.close()


@asynccontextmanager
async def cleared_away(process: WarmProcess) -> AsyncIterator[WarmProcess]:
    """Killed on leaving."""
    try:
        yield process
    finally:
        with trio.CancelScope(shield=True):
            process.kill()
            await process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    await trio.aclose_forcefully(stream)


# ------------------------------------------------------------ in the process that is copied


class Source:
    """Makes copies of its process as long as it is asked to."""

    def __init__(self, descriptor: int) -> None:
        self._asker = socket.socket(fileno=descriptor)
        self._statuses: dict[int, int] = {}
        self._ended, self._told = os.pipe()
        for end in (self._ended, self._told):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._told)

    def serve(self) -> Callable[[], int | None]:
        """In each copy: what it is to do. In the process itself: nothing, at the end."""
        while True:
            ready, _, _ = select.select([self._asker.fileno(), self._ended], [], [])
            if self._ended in ready:
                os.read(self._ended, 1 << 12)
                self._reap()
            if self._asker.fileno() in ready:
                message, given = self._asked()
                if not message:
                    return lambda: 0
                if task := self._copy(json.loads(message), given):
                    return task

    def _asked(self) -> tuple[bytes, list[int]]:
        message, given = b"", list[int]()
        while not message.endswith(b"\n"):
            more, descriptors, *_ = socket.recv_fds(self._asker, _LONGEST, 4)
            if not more:
                return b"", given
            message += more
            given += descriptors
        return message, given

    def _copy(self, asked: dict[str, Any], given: list[int]) -> Callable[[], int | None] | None:
        pid = os.fork()
        if pid == 0:
            return self._become(asked, given)
        *streams, self._statuses[pid] = given
        for descriptor in streams:
            os.close(descriptor)
        self._asker.send(str(pid).encode())
        return None

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                told = self._statuses.pop(pid)
                with suppress(BrokenPipeError):
                    os.write(told, str(os.waitstatus_to_exitcode(status)).encode())
                os.close(told)

    def _become(self, asked: dict[str, Any], given: list[int]) -> Callable[[], int | None]:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        for number, descriptor in enumerate(given[:3]):
            os.dup2(descriptor, number)
        # The interpreter's own were made for what these numbers meant before.
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)))
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)))
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(io.FileIO(2, "w", closefd=False)),
            "utf-8",
            "backslashreplace",
            write_through=True,
        )
        self._asker.close()
        for descriptor in (*given, *self._statuses.values(), self._ended, self._told):
            os.close(descriptor)
        os.chdir(asked["cwd"])
        os.environ.clear()
        os.environ.update(asked["env"])
        sys.argv = ["wholeturn", *asked["arguments"]]
        random.seed()
        module, _, name = asked["function"].partition(":")
        return cast(Callable[[], int | None], getattr(import_module(module), name))


def main() -> int | None:
    """The process that is copied, and each copy."""
    descriptor, *modules = sys.argv[1:]
    for name in modules:
        import_module(name)
    for piece in pieces():
        piece()
    gc.freeze()
    task = Source(int(descriptor)).serve()
    return task()


if __name__ == "__main__":
    sys.exit(main())
