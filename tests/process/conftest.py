"""What the tests of the real process may ask for."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.homes import Home
from tests.warm import Forker, forker

ROOM = 1 << 30
"""Bytes that must be free where files are kept in memory."""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A machine of its own, with a model that repeats what it is told."""
    made = Home(tmp_path)
    made.script(echo="{turn}: you said {last}")
    return made


@pytest.fixture(scope="session")
def copied(hand_opened_log: Path) -> Iterator[Forker | None]:
    """What processes can be copied from; None where there is no fork."""
    if not hasattr(os, "fork"):
        yield None
        return
    with forker() as made:
        yield made


@pytest.fixture
def quick_home(tmp_path: Path, copied: Forker | None) -> Iterator[Home]:
    """A home for very many short processes: in memory where there is room, and nobody waits for a start.

    Whoever is killed leaves the same there as on a disk.
    """
    memory = "/dev/shm"
    if not (os.path.isdir(memory) and shutil.disk_usage(memory).free > ROOM):
        yield Home(tmp_path, copied)
        return
    with tempfile.TemporaryDirectory(prefix="wholeturn-", dir=memory) as folder:
        yield Home(Path(folder), copied)
