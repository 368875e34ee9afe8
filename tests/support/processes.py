"""Waiting for what other processes bring about, and whether they are gone."""

import os
from collections.abc import Callable
from pathlib import Path

import trio

PATIENCE = 10.0


async def until(true: Callable[[], bool]) -> None:
    """Look again and again: another process sets no event of ours. The caller bounds it."""
    while not true():  # noqa: ASYNC110 - see above
        await trio.sleep(0.02)


async def all_gone(pids: Path, count: int) -> bool:
    """Whether all processes listed in a file, one a line and at least `count`, have ended or soon do."""
    listed = listed_in(pids)
    assert len(listed) >= count, listed
    with trio.move_on_after(PATIENCE):
        await until(lambda: not any(map(lives, listed)))
        return True
    return False


def listed_in(pids: Path) -> list[int]:
    """The process ids in a file, one a line; none when it is not there yet."""
    return [int(line) for line in pids.read_text().split()] if pids.exists() else []


def lives(pid: int) -> bool:
    """Whether the process runs; one that has ended and was not collected by its parent does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return not Path("/proc").exists() and _answers(pid)
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
