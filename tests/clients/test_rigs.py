"""The rigs themselves, on a small fake agent: they pass what is right, and notice what is wrong."""

import sys
from pathlib import Path

import pytest

from tests.clients.rigs import Conversation, converse, problems

CLIENTS = ("python", "typescript", "acpx")
TURNS = 5


def talk_to_fake(client: str, folder: Path, repository: Path, *flags: str) -> list[str]:
    (folder / "work").mkdir()
    (folder / "work" / "notes.txt").write_text("Buy milk.\n")
    agent = [sys.executable, str(repository / "tests" / "data" / "agents" / "trimming_agent.py"), *flags]
    prompts = [f"TURN-{turn:05d} go" for turn in range(1, TURNS + 1)]
    replies = [f"ANSWER-{turn:05d} is here." for turn in range(1, TURNS + 1)]
    talk = converse(client, agent, folder, prompts, {})
    assert talk.summary["asked"] == {"fs/read_text_file": TURNS}
    return problems(talk, replies, trims=1)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_sound_conversation_passes(client: str, tmp_path: Path, repository: Path):
    assert talk_to_fake(client, tmp_path, repository) == []


@pytest.mark.parametrize("client", ["python", "typescript"])
def test_a_stray_line_is_noticed(client: str, tmp_path: Path, repository: Path):
    assert talk_to_fake(client, tmp_path, repository, "--stray") == [
        "stray line on the wire: b'loading the model ...'"
    ]


@pytest.mark.parametrize("client", ["python", "typescript"])
def test_a_missing_twin_is_noticed(client: str, tmp_path: Path, repository: Path):
    (found,) = talk_to_fake(client, tmp_path, repository, "--no-twin")
    assert found.startswith("0 twins came for 1 notices")


def test_lost_text_a_wrong_end_and_missing_tools_are_noticed():
    told = {"turns": [{"text": "hal", "stop": "cancelled"}], "kinds": {}, "twins": [], "exit": 1}
    assert problems(Conversation(told, []), ["half", "more"], trims=1) == [
        "1 turns instead of 2",
        "turn 1 brought 'hal' instead of 'half'",
        "turn 1 ended with cancelled",
        "only 0 updates of kind tool_call",
        "only 0 updates of kind tool_call_update",
        "history was trimmed 0 times, not 1",
        "the agent's exit status was 1",
    ]
