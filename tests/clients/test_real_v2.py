"""The TypeScript SDK's client for the draft of ACP v2 holds a conversation with the real agent."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.clients.rigs import LONGEST, NODE, NODE_HOME, install_node_clients
from tests.process.homes import Home, call, calls, says

PROMPTS = [f"word {number}" for number in range(6)]


def test_turns_tools_trims_and_a_replay(tmp_path: Path):
    """Whatever does not fit its own schema, the SDK reports on stderr; nothing may."""
    home = Home(tmp_path)
    edit = call("write_file", path="made.txt", content="new\n")
    home.script(calls(edit), *(says([f"answer {number}", "."]) for number in range(len(PROMPTS))))
    home.configure(
        profile="max_history_messages = 2\nhistory_unit = 'turns'\ntrim_slack_ratio = 0", acp="v2 = true"
    )
    install_node_clients()
    spec = {"command": [sys.executable, "-m", "acp_server"], "cwd": str(home.work), "prompts": PROMPTS}
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [str(NODE), str(NODE_HOME / "typescript_client_v2.mjs"), json.dumps(spec)],
        env={**home.env, "PYTHONPATH": root, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["turns"] == [
        {"text": f"answer {number}.", "stop": "end_turn", "shown": True} for number in range(len(PROMPTS))
    ]
    assert (home.work / "made.txt").read_text() == "new\n"
    assert [question["subject"] for question in told["asked"]] == ["tool_call"]
    assert len(told["trims"]) == told["kinds"]["compaction_update"] == len(PROMPTS) - 2
    assert (told["kinds"]["agent_message"], told["exit"]) == (len(PROMPTS), 0)  # those of the replay
