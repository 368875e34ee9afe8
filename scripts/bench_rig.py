"""What all sections of the bench share: the mock model, the two agents, and the time that was their own.

An agent's own time in a turn is the wall time that the client sees less the time that the mock had the
request: from its last byte received to the answer's last byte written. What an agent does while the mock
still streams is hidden, as it is from the person who waits.
"""

import json
import os
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from acp_drive import Agent, Turn
from mock_text import prompt_text

HERE = Path(__file__).resolve().parent
CONFIG = """\
[agents.default]
provider = "mock"
runtime_profile = "default"
[providers.mock]
kind = "{kind}"
base_url = "{url}{path}"
model = "mock-model"
context_window = 16000
[runtime_profiles.default]
max_context_tokens = 12000
"""


def clean_environment(**more: str) -> dict[str, str]:
    """Ours, with compiled bytecode allowed: a start without it says nothing about the product."""
    unwanted = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHONUNBUFFERED")
    kept = {k: v for k, v in os.environ.items() if k not in unwanted and not k.startswith("WHOLETURN_")}
    return kept | more


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request at the mock: when it was there in full, when its answer was written, what it was."""

    received: float
    sent: float
    is_call: bool
    pieces: list[tuple[int, float]]


class Mock:
    """The mock model, a process of its own."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, HERE / "mock_llm.py"],
            stdout=subprocess.PIPE,
            text=True,
            env=clean_environment(),
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()

    def _ask(self, path: str, data: bytes | None = None) -> Any:  # noqa: ANN401
        # Straight to the loopback address, whatever proxy the environment names.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(urllib.request.Request(self.url + path, data), timeout=60) as answer:
            return json.load(answer)

    def configure(self, **config: object) -> None:
        """Change what it answers."""
        self._ask("/_mock/config", json.dumps(config).encode())

    def exchanges(self, turn: Turn) -> list[Exchange]:
        """The requests of that turn."""
        return [
            Exchange(e["received"], e["sent"], e["call"], [(n, t) for n, t in e.get("pieces", [])])
            for e in self._ask("/_mock/log")
            if turn.start <= e["received"] <= turn.end
        ]

    def own_ms(self, turns: Sequence[Turn]) -> list[float]:
        """The agent's own milliseconds in each of the turns."""
        log = self._ask("/_mock/log")
        return [
            1e3
            * (
                turn.wall
                - sum(e["sent"] - e["received"] for e in log if turn.start <= e["received"] <= turn.end)
            )
            for turn in turns
        ]

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()


class Rig:
    """A folder, a mock, and agents to start. `agent`: 'wholeturn', 'bare', or a command line."""

    def __init__(self, folder: Path, agent: str, *, quick: bool) -> None:
        self.folder, self.quick = folder, quick
        self.mock = Mock()
        self._serial = 0
        self._ours = {
            "wholeturn": [str(Path(sys.executable).with_name("wholeturn"))],
            "bare": [sys.executable, str(HERE / "bench_bare_agent.py")],
        }.get(agent) or shlex.split(agent)
        self.work = folder / "work"
        self.work.mkdir()
        (self.work / "notes.txt").write_text("A line of notes.\n" * 40)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.mock.close()

    def environment(self, kind: str = "openai", data: Path | None = None) -> Mapping[str, str]:
        """Settings and data of its own for each agent process. kind: how it speaks to the model.

        data: the folder of a store that is there already.
        """
        self._serial += 1
        home = self.folder / f"home-{self._serial}"
        home.mkdir()
        path = "" if kind == "ollama" else "/v1"
        (home / "config.toml").write_text(CONFIG.format(url=self.mock.url, kind=kind, path=path))
        return clean_environment(
            WHOLETURN_CONFIG_DIR=str(home), WHOLETURN_DATA_DIR=str(data or home), BARE_AGENT_URL=self.mock.url
        )

    def ours(self, *, sample_memory: bool = False, kind: str = "openai", data: Path | None = None) -> Agent:
        """The agent under test, just spawned."""
        return Agent(self._ours, self.work, env=self.environment(kind, data), sample_memory=sample_memory)

    def bare(self, *, sample_memory: bool = False) -> Agent:
        """The bare loop, just spawned."""
        argv = [sys.executable, str(HERE / "bench_bare_agent.py")]
        return Agent(argv, self.work, env=self.environment(), sample_memory=sample_memory)


class Talk:
    """A session in which turn after turn is said. `chars`: the length of a prompt."""

    def __init__(self, agent: Agent, chars: int = 2000) -> None:
        self.agent, self.chars, self.count = agent, chars, 0
        agent.initialize()
        self.session = agent.new()[1]

    def turn(self) -> Turn:
        """The next one."""
        self.count += 1
        return self.agent.prompt(self.session, prompt_text(self.count, self.chars))

    def advance(self, to: int) -> None:
        """Up to turn `to`, unmeasured."""
        while self.count < to:
            self.turn()
