"""What is imported while nobody waits: all that a load would import, and never in a request's way."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from acp_server.start import early_imports
from acp_server.start.early_imports import QUIET, warm_up

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import os, sys
from pathlib import Path
import trio
import acp_server.start.serve
from acp_server.app.app import App
from acp_server.config.settings import Options
from acp_server.start.early_imports import pieces

for piece in pieces():
    piece()
warm = set(sys.modules)


class Silent:
    async def notify(self, method, params):
        pass

    def notify_nowait(self, method, params):
        pass

    async def call(self, method, params):
        pass


async def main():
    app = App(Options(), os.environ, lambda *given: app.live.make_client(Silent(), *given))
    app.initialized({"protocolVersion": 1})
    cwd = Path.cwd()
    session = await app.new_session(cwd)
    await app.close_session(session)
    loaded = await app.load_session(session, cwd)
    await app.live.replay(loaded.conversation)
    await app.aclose()


trio.run(main)
ours = ("acp_server", "runtime", "schemas")
print(*sorted(name for name in set(sys.modules) - warm if name.split(".")[0] in ours))
"""
CONFIG = """
[agents.default]
provider = "mock"
[providers.mock]
kind = "openai"
base_url = "http://127.0.0.1:9/v1"
model = "m"
context_window = 16000
"""


def test_a_load_imports_nothing_of_ours_any_more(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(CONFIG)
    home = {"WHOLETURN_CONFIG_DIR": str(tmp_path), "WHOLETURN_DATA_DIR": str(tmp_path), "PATH": "/bin"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env=home, capture_output=True, text=True, timeout=60
    )
    assert (done.stderr, done.stdout.split()) == ("", [])


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When each of three pieces was done."""
    times: list[float] = []

    def some() -> Iterator[Callable[[], object]]:
        yield from [lambda: times.append(trio.current_time())] * 3

    monkeypatch.setattr(early_imports, "pieces", some)
    return times


async def test_it_begins_after_a_moment_of_rest(done: list[float], autojump_clock: MockClock) -> None:
    begun = trio.current_time()
    await warm_up(lambda: False, lambda: False)
    assert len(done) == 3
    assert done[0] - begun >= QUIET


async def test_it_waits_while_a_request_is_in_work(done: list[float], autojump_clock: MockClock) -> None:
    until = trio.current_time() + 5
    await warm_up(lambda: trio.current_time() < until, lambda: False)
    assert len(done) == 3
    assert done[0] >= until


async def test_it_ends_when_there_is_a_session(done: list[float], autojump_clock: MockClock) -> None:
    await warm_up(lambda: False, lambda: len(done) == 2)
    assert len(done) == 2
