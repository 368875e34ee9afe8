"""Holds a conversation with an agent through acpx, one command a prompt; one JSON line tells what arrived.

`python acpx_client.py SPEC`, where SPEC is JSON: command (list), cwd, prompts (list), offers (list; empty
for no files and no terminals), node (the program), home (acpx keeps its records there). Standard library
only.
"""

import collections
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

CLI = Path(__file__).resolve().parent / "node" / "node_modules" / "acpx" / "dist" / "cli.js"
TWIN = "wholeturn/history_trimmed"
OWN_REQUESTS = ("initialize", "session/")


class Acpx:
    """The command line for one agent and one folder; its frames as they come."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.head = [spec["node"], str(CLI), "--agent", shlex.join(spec["command"]), "--cwd", spec["cwd"]]
        self.head += ["--format", "json", "--approve-all", "--ttl", "20"]
        self.head += [] if spec["offers"] else ["--no-fs", "--no-terminal"]
        self.environment = {**os.environ, "HOME": spec["home"]}
        self.stray: list[str] = []

    def run(self, *arguments: str) -> list[dict[str, Any]]:
        """One command; what it printed, line by line."""
        command = [*self.head, *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise RuntimeError(f"acpx {arguments[0]}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
        frames = []
        for line in done.stdout.splitlines():
            try:
                frames.append(json.loads(line))
            except ValueError:
                self.stray.append(line)
        return frames


def converse(spec: dict[str, Any]) -> dict[str, Any]:
    """The whole conversation."""
    acpx = Acpx(spec)
    kinds: collections.Counter[str] = collections.Counter()
    asked: collections.Counter[str] = collections.Counter()
    turns, twins = [], []
    acpx.run("sessions", "new")
    for prompt in spec["prompts"]:
        text, stop = [], None
        for frame in acpx.run("prompt", prompt):
            stop = (frame.get("result") or {}).get("stopReason", stop)
            method = frame.get("method", "")
            if method == "session/update":
                update = frame["params"]["update"]
                kinds[update["sessionUpdate"]] += 1
                if update["sessionUpdate"] == "agent_message_chunk":
                    text.append(update["content"]["text"])
                twins += [meta for key, meta in (update.get("_meta") or {}).items() if key == TWIN]
            elif "id" in frame and method and not method.startswith(OWN_REQUESTS):
                asked[method] += 1
        turns.append({"text": "".join(text), "stop": stop})
    acpx.run("sessions", "close")
    return {
        "client": "acpx",
        "turns": turns,
        "kinds": kinds,
        "twins": twins,
        "asked": asked,
        "stray": acpx.stray,
        "exit": 0,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(converse(json.loads(sys.argv[1]))) + "\n")
