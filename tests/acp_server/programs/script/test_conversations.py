"""The written talks of tests/conversations, played against the real server."""

import sys
from pathlib import Path

import pytest

from acp_server.programs.script.parse import parse
from acp_server.programs.script.play import outcome_text, play
from acp_server.programs.script.stage import Options

FOLDER = Path(__file__).parents[3] / "conversations"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.jsonl")), ids=lambda path: path.stem)
async def test_conversation(path, tmp_path):
    # Folders of its own: what the person who runs the tests has set must not matter.
    environment = {
        name: str(tmp_path) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
    }
    script = parse(path.read_text(encoding="utf-8"), path.name, str(FOLDER))
    outcome = await play(script, Options((sys.executable, "-m", "acp_server"), timeout=30.0, env=environment))
    assert outcome.failure is None, outcome_text(outcome)
