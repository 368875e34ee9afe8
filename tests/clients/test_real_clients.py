"""Real clients hold a long conversation with the real agent: everything arrives, nothing else does."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mock_text import prompt_text, prose, reply_text
from tests.clients.rigs import converse, problems

TURNS = 30
TRIMS = 3
REPLY_CHARS = 600
CONFIG = """\
[agents.default]
provider = "mock"
runtime_profile = "default"
[providers.mock]
kind = "openai"
base_url = "{url}/v1"
model = "mock-model"
context_window = 16000
[runtime_profiles.default]
max_context_tokens = 4000
"""


@pytest.mark.parametrize("client", ["python", "typescript", "acpx"])
def test_thirty_turns_with_tools_and_trims(client: str, tmp_path: Path, mock_model: Callable[..., str]):
    url = mock_model(reply_chars=REPLY_CHARS, chunks=6, tool_loop=1, tool_path="notes.txt")
    settings = tmp_path / "settings"
    for folder in (settings, tmp_path / "work"):
        folder.mkdir()
    (settings / "config.toml").write_text(CONFIG.format(url=url))
    (tmp_path / "work" / "notes.txt").write_text(prose(1200, 1))
    talk = converse(
        client,
        [str(Path(sys.executable).with_name("wholeturn"))],
        tmp_path,
        [prompt_text(turn, 200) for turn in range(1, TURNS + 1)],
        {"WHOLETURN_CONFIG_DIR": str(settings), "WHOLETURN_DATA_DIR": str(tmp_path / "data")},
    )
    replies = [reply_text(turn, REPLY_CHARS) for turn in range(1, TURNS + 1)]
    assert problems(talk, replies, trims=TRIMS) == []
    assert talk.summary["asked"].get("fs/read_text_file", 0) >= TURNS
