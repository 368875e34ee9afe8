"""The real process with a real model in it: cancel, the end in the middle of an answer, the demonstration."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from tests.process.homes import Home
from tests.runtime.providers.local.conftest import smollm2 as smollm2
from tests.support.wire_talk import Talk

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120
"""Seconds: the machine may do other things as well."""


@pytest.fixture
def local_home(home: Home, smollm2: Path) -> Home:
    lines = [
        'kind = "local"',
        f'model = "{smollm2}"',
        "context_window = 2048",
        "max_output_tokens = 400",
        "options = { extra_body = { temperature = 0, repeat_penalty = 1.1 } }",
    ]
    home.configure("\n".join(lines), profile="tools = []\nmax_history_messages = 2")
    return home


async def see_text(talk: Talk, since: int) -> None:
    with trio.fail_after(PATIENCE):
        await talk.see("agent_message_chunk", since=since)


async def test_cancel_then_another_prompt_then_the_end_of_input(local_home):
    async with local_home.talk() as talk:
        request = await talk.ask("Tell me a long story about a village by the sea.")
        await see_text(talk, 0)
        asked = trio.current_time()
        await talk.cancel()
        with trio.fail_after(PATIENCE):
            turn = await talk.end_of(request)
        assert turn.stop == "cancelled"
        assert trio.current_time() - asked < 0.5
        since = len(talk.agent.frames)
        await talk.ask("Tell me a long story about a mountain.")
        await see_text(talk, since)
    # The agent was left in the middle of its answer: `talk` checks that it ended well.
    assert "Traceback" not in local_home.log.read_text()


SHORT = (
    "import sys; from pathlib import Path; from acp_server.programs.demo import play as demo; "
    "demo.PROMPTS = ('Hello! Who are you?', 'Name a colour.'); sys.exit(demo.play_local(Path.cwd()))"
)


def test_the_demonstration_with_its_own_model(smollm2: Path, tmp_path: Path) -> None:
    env = {**os.environ, "WHOLETURN_DATA_DIR": str(smollm2.parent.parent), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", SHORT]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 > Name a colour." in done.stdout
    assert "prompts: 2" in done.stdout
    assert "Fetching" not in done.stdout
