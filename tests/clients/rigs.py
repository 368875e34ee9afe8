"""Runs a real client against an agent and says what was wrong with what arrived. Asserts nothing."""

import fcntl
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
NODE_HOME = HERE / "node"
NODE = Path(sys.executable).with_name("node")
NPM = Path(sys.executable).with_name("npm")
LONGEST = 300.0
"""Seconds that a conversation may take. acpx waits about a second after each turn by itself."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """What the client told (`summary`), and the agent's output as it was on the wire (`lines`)."""

    summary: Mapping[str, Any]
    lines: Sequence[bytes]

    def frames(self) -> list[dict[str, Any]]:
        """The lines that are messages."""
        return [frame for line in self.lines if (frame := message(line)) is not None]

    def updates(self) -> list[dict[str, Any]]:
        """The `update` of every session/update on the wire."""
        return [f["params"]["update"] for f in self.frames() if f.get("method") == "session/update"]


def message(line: bytes) -> dict[str, Any] | None:
    """The JSON-RPC message in a line; None when it is none."""
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) and value.get("jsonrpc") == "2.0" else None


def install_node_clients() -> None:
    """`npm ci` by the lock file, once for each state of it; others that want it wait."""
    lock_file = NODE_HOME / "package-lock.json"
    wanted = hashlib.sha256(lock_file.read_bytes()).hexdigest()
    stamp = NODE_HOME / "node_modules" / ".installed"
    with open(lock_file, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == wanted:
            return
        environment = {**os.environ, "PATH": f"{NODE.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
        command = [str(NPM), "ci", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=NODE_HOME, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"npm ci failed:\n{done.stdout}\n{done.stderr}")
        stamp.write_text(wanted)


def rig_command(client: str) -> list[str]:
    """How the client's own program is started; its one argument is the spec."""
    if client == "typescript":
        return [str(NODE), str(NODE_HOME / "typescript_client.mjs")]
    return [sys.executable, str(HERE / f"{client}_client.py")]


def converse(
    client: str,
    agent: Sequence[str],
    folder: Path,
    prompts: Sequence[str],
    environment: Mapping[str, str],
    offers: Sequence[str] = ("read",),
) -> Conversation:
    """Let the client say all the prompts to the agent, whose working directory is `folder / "work"`.

    offers: what of `read`, `write` (files) and `terminal` the client does for the agent; not all of them know
    how to offer less, or more, than they do by themselves.
    """
    if client != "python":
        install_node_clients()
    copy, home = folder / "wire.jsonl", folder / "home"
    copy.touch()
    home.mkdir()
    spec = {
        "command": [sys.executable, str(HERE / "tee_agent.py"), str(copy), *agent],
        "cwd": str(folder / "work"),
        "prompts": list(prompts),
        "offers": list(offers),
        "node": str(NODE),
        "home": str(home),
    }
    done = subprocess.run(
        [*rig_command(client), json.dumps(spec)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    if done.returncode:
        raise RuntimeError(f"the {client} client failed:\n{done.stdout}\n{done.stderr}")
    return Conversation(json.loads(done.stdout), copy.read_bytes().splitlines())


def problems(talk: Conversation, replies: Sequence[str], *, trims: int) -> list[str]:
    """All that is wrong with a conversation in which each turn has a tool call; [] when nothing is.

    replies: the text that each turn must have brought. trims: how many there must be at least.
    """
    told = talk.summary
    found = [f"stray line on the wire: {line!r}" for line in talk.lines if message(line) is None]
    found += [f"stray line from the client: {line!r}" for line in told.get("stray", [])]
    if len(told["turns"]) != len(replies):
        found.append(f"{len(told['turns'])} turns instead of {len(replies)}")
    for number, (turn, reply) in enumerate(zip(told["turns"], replies, strict=False), 1):
        if turn["text"] != reply:
            found.append(f"turn {number} brought {turn['text']!r} instead of {reply!r}")
        if turn["stop"] != "end_turn":
            found.append(f"turn {number} ended with {turn['stop']}")
    for kind in ("tool_call", "tool_call_update"):
        if told["kinds"].get(kind, 0) < len(replies):
            found.append(f"only {told['kinds'].get(kind, 0)} updates of kind {kind}")
    found += twin_problems(talk, trims)
    if told["exit"] != 0:
        found.append(f"the agent's exit status was {told['exit']}")
    return found


def twin_problems(talk: Conversation, trims: int) -> list[str]:
    """Whether each notice on the wire has its twin, and each twin came to the client as it was sent."""
    notices = [u for u in talk.updates() if u["sessionUpdate"] == "history_trimmed"]
    facts = ("droppedMessages", "keptTurns", "reason")
    sent = [{key: notice[key] for key in facts} for notice in notices]
    twins = [{key: twin.get(key) for key in facts} for twin in talk.summary["twins"]]
    found = []
    if len(sent) < trims:
        found.append(f"history was trimmed {len(sent)} times, not {trims}")
    if twins != sent:
        found.append(f"{len(twins)} twins came for {len(sent)} notices: {twins} for {sent}")
    return found
