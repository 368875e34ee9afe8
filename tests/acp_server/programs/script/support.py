"""Plays lines against the small agent of the tests."""

import json
import sys
from pathlib import Path

from acp_server.programs.script.parse import parse
from acp_server.programs.script.play import Outcome, outcome_text, play
from acp_server.programs.script.stage import Options

AGENT = Path(__file__).parents[3] / "data" / "agents" / "fake_agent.py"
COMMAND = (sys.executable, "-IS", str(AGENT))

OPEN = (
    {"send": {"id": 1, "method": "initialize", "params": {"protocolVersion": 1}}},
    {"expect": {"id": 1, "result": {"protocolVersion": 1}}},
    {"send": {"id": 2, "method": "session/new", "params": {"cwd": "$CWD", "mcpServers": []}}},
    {"expect": {"id": 2, "result": {"sessionId": "$capture:SESSION"}}},
)
"""A session; the lines of a test follow from line 5 on."""


def prompt(text: str, request: object = 3) -> dict[str, object]:
    """A step that sends a prompt; the agent's first word says what it does."""
    params = {"sessionId": "$SESSION", "prompt": [{"type": "text", "text": text}]}
    return {"send": {"id": request, "method": "session/prompt", "params": params}}


DONE = {"expect": {"id": 3, "result": {"stopReason": "end_turn"}}}
CHUNK = {"params": {"update": {"sessionUpdate": "agent_message_chunk"}}}
USAGE = {"params": {"update": {"sessionUpdate": "usage_update"}}}


async def run(*lines: object, command: tuple[str, ...] = COMMAND, **options: object) -> Outcome:
    """Play the steps."""
    text = "\n".join(json.dumps(line) for line in lines)
    settings = {"timeout": 20.0, "grace": 5.0} | options
    return await play(parse(text, "talk.jsonl", "/fixtures"), Options(command, **settings))  # type: ignore[arg-type]


async def passes(*lines: object, **options: object) -> Outcome:
    """Play the steps in a session; all must be as scripted."""
    outcome = await run(*OPEN, *lines, **options)  # type: ignore[arg-type]
    assert outcome.failure is None, outcome_text(outcome)
    return outcome


async def fails(*lines: object, **options: object) -> str:
    """Play the steps in a session; one must fail. Gives the report."""
    outcome = await run(*OPEN, *lines, **options)  # type: ignore[arg-type]
    assert outcome.failure is not None
    return outcome_text(outcome)
