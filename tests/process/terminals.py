"""A terminal of its own for a program: what a person types, and what the person sees."""

import json
import os
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 20.0
CTRL_C, CTRL_D = b"\x03", b"\x04"
# In a session of its own with this terminal: only then does Ctrl-C reach it as a signal.
ADOPT = """
import fcntl, os, sys, termios
fcntl.ioctl(int(sys.argv[1]), termios.TIOCSCTTY, 0)
os.execv(sys.argv[2], sys.argv[2:])
"""


class Terminal:
    """seen: everything that was shown. `inner` is the program's side."""

    def __init__(self, outer: int, inner: int) -> None:
        self.outer = outer
        self.inner = inner
        self.seen = b""
        self.process: subprocess.Popen[bytes] | None = None

    def start(
        self, command: Sequence[str], env: Mapping[str, str], cwd: Path, *, on: Sequence[int] = (0, 1, 2)
    ) -> "subprocess.Popen[bytes]":
        """Run the command with the terminal as these descriptors; the others are pipes."""
        streams = [self.inner if number in on else subprocess.PIPE for number in range(3)]
        tty = str(next(iter(on)))
        self.process = subprocess.Popen(
            [sys.executable, "-c", ADOPT, tty, *command],
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
        )
        return self.process

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self.outer, keys)

    def send(self, message: Mapping[str, Any]) -> None:
        """Type a message and press Return."""
        self.type(json.dumps(message).encode() + b"\n")

    def wait_for(self, text: bytes) -> None:
        """Look until it is shown. Raises TimeoutError with what was shown instead."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.seen:
            ready, _, _ = select.select([self.outer], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError(f"{text!r} was not shown, but {self.seen!r}")
            try:
                self.seen += os.read(self.outer, 65536)
            except OSError:
                raise TimeoutError(f"it ended without {text!r}: {self.seen!r}") from None

    def frames(self) -> list[dict[str, Any]]:
        """The messages that were shown and are no echo of what was typed: answers and updates."""
        lines = (line.strip() for line in self.seen.splitlines())
        found = [json.loads(line) for line in lines if line.startswith(b'{"jsonrpc"')]
        return [frame for frame in found if "result" in frame or frame.get("method") == "session/update"]

    def answer(self, number: int) -> Any:
        """The result of the request with that id."""
        self.wait_for(f'"id":{number}}}'.encode())
        (result,) = [frame["result"] for frame in self.frames() if frame.get("id") == number]
        return result


@contextmanager
def terminal() -> Iterator[Terminal]:
    """A new terminal; what still runs in it is killed at the end."""
    outer, inner = os.openpty()
    made = Terminal(outer, inner)
    before = termios.tcgetattr(inner)
    try:
        yield made
        assert termios.tcgetattr(inner) == before, "the terminal was left in another state"
        assert os.get_blocking(inner), "the terminal was left non-blocking"
    finally:
        if made.process is not None:
            made.process.kill()
            made.process.communicate()
        os.close(outer)
        os.close(inner)
