"""A command line in a shell of its own: bounded in time and output, watched, and gone when `run` returns.

stdin is closed. The shell leads a session of its own, so nothing in it can ask at our terminal. Of its output
the newest bytes are kept, as text that can be read. Knows no tool and no client.
"""

import os
import re
import secrets
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from signal import SIGTERM, Signals

import trio

from runtime.ports import ExitStatus
from runtime.tools.shell.leftover_processes import MARK, kill_group, kill_left
from runtime.tools.unread_output import rest_of
from runtime.values.errors import ToolError

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links
    r"|\x1b[ -/]*[0-~]"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Tail:
    """Keeps the last `limit` bytes, and counts all."""

    def __init__(self, limit: int) -> None:
        self.total = 0
        self._limit = limit
        self._kept = bytearray()

    def feed(self, data: bytes | bytearray) -> None:
        """The next bytes."""
        self.total += len(data)
        self._kept += data
        # Cut now and then, not each time: moving the rest costs as much as the rest is long.
        if len(self._kept) > 2 * self._limit:
            del self._kept[: -self._limit]

    @property
    def lost(self) -> int:
        """How many bytes at the beginning are not in `text()`."""
        return max(0, self.total - self._limit)

    def text(self, limit: int | None = None) -> str:
        """The last bytes as text, whole lines if possible. limit: fewer of them."""
        most = min(self._limit, limit or self._limit)
        data = bytes(self._kept[-most:])
        if self.total > most:
            line = data.find(b"\n") + 1
            data = data[line:] if 0 < line <= len(data) // 2 else data
        return readable(data.decode("utf-8", "replace"))


def readable(text: str) -> str:
    """Without what only a terminal can show: colours, lines that were overwritten, control characters."""
    lines = _ESCAPES.sub("", text).replace("\r\n", "\n").split("\n")
    # What stands before a return was written over, unless nothing came behind it.
    return _CONTROLS.sub("", "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines))


GRACE = 0.4
"""Seconds that a process has between the polite signal and the other one."""
_DRAIN = 0.3
_END = 2.0
_LOOK_EVERY = 0.5
_MOST_REST = 1024 * 1024
"""Bytes still read when the command has ended: more than a pipe holds."""
_OURS = "WHOLETURN_"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended. left_behind: it had left processes in the background, which were stopped."""

    status: ExitStatus
    timed_out: bool = False
    left_behind: bool = False


@cache
def shell() -> tuple[str, ...]:
    """The arguments before the command line: bash where there is one, for that is what models write."""
    if os.name == "nt":
        return ("cmd.exe", "/d", "/c")
    return (next((path for path in ("/bin/bash", "/usr/bin/bash") if os.path.exists(path)), "/bin/sh"), "-c")


def environment(withheld: frozenset[str], given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The user's variables, without our settings and the keys that they name."""
    kept = {
        name: value for name, value in given.items() if name not in withheld and not name.startswith(_OURS)
    }
    return {**kept, "TERM": "dumb"}


async def run(
    command: str,
    cwd: Path,
    variables: Mapping[str, str],
    *,
    time_limit: float,
    tail: Tail,
    show: Callable[[], Awaitable[None]],
) -> Ended:
    """Run it; the output goes into `tail`, `show` is called a few times a second while there is news.

    Raises ToolError when it cannot be started. Cancelled, it kills whatever was started first.
    """
    mark = secrets.token_hex(16)
    process = await _start(command, cwd, {**variables, MARK: mark})
    ended: Ended | None = None
    try:
        async with trio.open_nursery() as nursery:
            drained = trio.Event()
            nursery.start_soon(_read, process, tail, drained)
            nursery.start_soon(_watch, tail, show)
            ended = await _to_the_end(process, mark, drained, time_limit)
            nursery.cancel_scope.cancel()
        # A busy machine may have had no time to read all of it.
        tail.feed(rest_of(process.stdout, _MOST_REST))
    finally:
        if ended is None:
            with trio.move_on_after(_END, shield=True):
                await _stop(process)
                await _kill_left(process, mark)
        await _close(process)
    assert ended is not None
    return ended


async def _to_the_end(process: trio.Process, mark: str, drained: trio.Event, time_limit: float) -> Ended:
    with trio.move_on_after(time_limit):
        await process.wait()
    timed_out = process.returncode is None
    if timed_out:
        await _stop(process)
    with trio.move_on_after(_DRAIN):
        await drained.wait()
    # What left even the command's session did so on purpose, unless time is up.
    left_behind = await _kill_left(process, mark if timed_out else "")
    # Whoever held the pipe is gone by now; a process that could not be found does not hold us.
    with trio.move_on_after(_DRAIN):
        await drained.wait()
    return Ended(_status(process.returncode), timed_out, left_behind and not timed_out)


async def _start(command: str, cwd: Path, variables: Mapping[str, str]) -> trio.Process:
    try:
        return await trio.lowlevel.open_process(
            [*shell(), command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=dict(variables),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ToolError(f"the command could not be started ({reason})") from error


async def _read(process: trio.Process, tail: Tail, drained: trio.Event) -> None:
    stream = process.stdout
    while stream is not None and (data := await stream.receive_some(65536)):
        tail.feed(data)
    drained.set()


async def _watch(tail: Tail, show: Callable[[], Awaitable[None]]) -> None:
    shown = 0
    while True:
        await trio.sleep(_LOOK_EVERY)
        if tail.total != shown:
            shown = tail.total
            await show()


async def _stop(process: trio.Process) -> None:
    """First politely: a test run may want to clean up."""
    if process.returncode is None and kill_group(process.pid, SIGTERM):
        with trio.move_on_after(GRACE):
            await process.wait()
    kill_group(process.pid)
    await process.wait()


async def _kill_left(process: trio.Process, mark: str) -> bool:
    return await trio.to_thread.run_sync(kill_left, process.pid, mark)


async def _close(process: trio.Process) -> None:
    if process.stdout is not None:
        await trio.aclose_forcefully(process.stdout)


def _status(returncode: int | None) -> ExitStatus:
    if returncode is None or returncode >= 0:
        return ExitStatus(returncode)
    try:
        return ExitStatus(None, Signals(-returncode).name)
    except ValueError:
        return ExitStatus(None, f"signal {-returncode}")
