"""`wholeturn gateway` as a process of its own: started, found, ended."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import trio

from tests.process.homes import Home
from tests.support.wire import PATIENCE

COMMAND = (sys.executable, "-m", "acp_server", "gateway")


@dataclass
class Running:
    """The process. said: its lines on stdout so far."""

    process: trio.Process
    home: Home
    said: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Its address, for WebSockets."""
        return self.said[0].split()[2].partition("#")[0].rstrip("/").replace("http", "ws", 1)

    @property
    def port(self) -> int:
        """Its port."""
        return int(self.url.rpartition(":")[2])

    @property
    def token(self) -> str:
        """Out of its file."""
        return token_file(self.home).read_text().strip()

    async def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, float]:
        """Send a signal and wait; gives the exit status and the seconds that it took."""
        began = trio.current_time()
        self.process.send_signal(number)
        with trio.fail_after(PATIENCE):
            return await self.process.wait(), trio.current_time() - began


def token_file(home: Home) -> Path:
    """Where the token is kept."""
    return home.data / "gateway.token"


@asynccontextmanager
async def running(home: Home, *arguments: str) -> AsyncIterator[Running]:
    """A gateway on a port of its own, ready. It is killed on leaving, if it still runs."""
    with home.log.open("ab") as log:
        process = await trio.lowlevel.open_process(
            [*COMMAND, "--port", "0", *arguments],
            cwd=home.spawn,
            env=home.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    assert process.stdout is not None
    held = b""
    try:
        with trio.fail_after(PATIENCE):
            while held.count(b"\n") < 2:
                piece = await process.stdout.receive_some(4096)
                assert piece, home.log.read_text()
                held += piece
        yield Running(process, home, held.decode().splitlines())
        assert "Traceback" not in home.log.read_text(), home.log.read_text()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with trio.CancelScope(shield=True):
            await process.wait()
        await process.stdout.aclose()


def refused(home: Home, *arguments: str) -> str:
    """What a start that must fail says; it must say it in one line."""
    done = subprocess.run(
        [*COMMAND, "--port", "0", *arguments],
        cwd=home.spawn,
        env=home.env,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 1, done
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr
