"""What all tests may ask for: the repository, a mock model, and how hard properties are tried."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from hypothesis import settings

from tests.hand_opened import Watch
from tests.locks import LockAsker, lock_asker

ROOT = Path(__file__).resolve().parent.parent

HAND_OPENED: list[str] = []
WATCH = Watch(HAND_OPENED.append)
WATCH.install()

# Machines under load miss any deadline, so there is none: a hang is what the test's own bounds are for.
settings.register_profile("quick", max_examples=20, deadline=None)
settings.register_profile("default", max_examples=100, deadline=None)
settings.register_profile("ci", max_examples=500, deadline=None)
settings.register_profile("thorough", max_examples=50_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


SLOW_FIRST = ("clients", "process", "contracts")
"""Folders whose files take longest: begun first, so that no worker waits for the other at the end."""


PROCESS_FOLDERS = ("clients", "process", "editors", "gateway")
"""Folders whose tests start processes: `scripts/test --quick` takes the first test of each of their files."""


def folder_of(item: pytest.Item) -> str:
    """The folder below `tests` that a test belongs to."""
    return item.path.relative_to(ROOT / "tests").parts[0]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The order of whole files; within a file it stays as it was. Marks what a quick look takes."""
    seen: set[Path] = set()
    for item in items:
        first = item.path not in seen and item.get_closest_marker("system") is None
        if folder_of(item) not in PROCESS_FOLDERS or first:
            item.add_marker("quick")
        if first:
            seen.add(item.path)
    place = {name: number for number, name in enumerate(SLOW_FIRST)}
    items.sort(key=lambda item: place.get(folder_of(item), len(place)))


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return ROOT


@contextmanager
def mock_model_process(config: dict[str, object]) -> Iterator[str]:
    """The mock model as a process; yields its address, without a path."""
    command = [sys.executable, str(ROOT / "scripts" / "mock_llm.py"), "--config", json.dumps(config)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


@pytest.fixture
def mock_model() -> Iterator[Callable[..., str]]:
    """Starts mock models: `mock_model(reply_chars=600)` gives the address of a new one."""
    with ExitStack() as stack:
        yield lambda **config: stack.enter_context(mock_model_process(config))


@pytest.fixture(scope="session", name="lock_asker")
def _lock_asker() -> LockAsker:
    """Asks who has a file locked."""
    return lock_asker()


@pytest.fixture(scope="session")
def hand_opened_log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What processes that tests start say of files that were opened by hand."""
    log = tmp_path_factory.mktemp("guard") / "hand_opened.log"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HAND_OPENED_LOG", str(log))
        patch.setenv("PYTHONPATH", str(ROOT / "tests" / "guarded"), prepend=os.pathsep)
        yield log


@pytest.fixture(autouse=True)
def _no_open_store_is_opened_by_hand(request: pytest.FixtureRequest, hand_opened_log: Path) -> Iterator[None]:
    """Fails a test in which that happens, unless it is marked `opens_stores`: it shows what comes of it."""
    WATCH.forget()
    HAND_OPENED.clear()
    hand_opened_log.write_text("")
    yield
    told = "\n".join(HAND_OPENED) + hand_opened_log.read_text()
    if told and request.node.get_closest_marker("opens_stores") is None:
        pytest.fail(told, pytrace=False)
