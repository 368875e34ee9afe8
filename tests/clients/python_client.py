"""Holds a conversation with an agent through the Python SDK, and tells in one JSON line what arrived.

`python python_client.py SPEC`, where SPEC is JSON: command (list), cwd, prompts (list). A program of its
own, since the SDK runs on asyncio.
"""

import asyncio
import collections
import json
import os
import sys
from pathlib import Path
from typing import Any, cast

from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.schema import ClientCapabilities, FileSystemCapabilities, ReadTextFileResponse

TWIN = "wholeturn/history_trimmed"
LINE_LIMIT = 64 * 1024 * 1024


def part_of(path: Path, first: int, limit: int | None) -> str:
    """Some lines of a file; all that follow without a limit."""
    lines = path.read_text().splitlines(keepends=True)
    return "".join(lines[first : first + limit if limit else None])


class Editor:
    """The client's side: collects updates, lends files."""

    def __init__(self) -> None:
        self.kinds: collections.Counter[str] = collections.Counter()
        self.text: list[str] = []
        self.twins: list[Any] = []
        self.asked: collections.Counter[str] = collections.Counter()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.kinds[update.session_update] += 1
        if update.session_update == "agent_message_chunk":
            self.text.append(update.content.text)
        if TWIN in (update.field_meta or {}):
            self.twins.append(update.field_meta[TWIN])

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **_: Any
    ) -> ReadTextFileResponse:
        self.asked["fs/read_text_file"] += 1
        return ReadTextFileResponse(content=part_of(Path(path), (line or 1) - 1, limit))


async def converse(spec: dict[str, Any]) -> dict[str, Any]:
    """The whole conversation; the agent's exit status comes last."""
    editor, turns = Editor(), []
    command, *arguments = spec["command"]
    spawned = spawn_agent_process(
        cast(Any, editor),
        command,
        *arguments,
        cwd=spec["cwd"],
        env=dict(os.environ),  # the SDK alone would hand on only a few variables
        transport_kwargs={"limit": LINE_LIMIT, "stderr": None},
    )
    async with spawned as (connection, process):
        offers = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True, write_text_file=False))
        await connection.initialize(protocol_version=PROTOCOL_VERSION, client_capabilities=offers)
        session = await connection.new_session(cwd=spec["cwd"], mcp_servers=[])
        for prompt in spec["prompts"]:
            editor.text.clear()
            done = await connection.prompt(session_id=session.session_id, prompt=[text_block(prompt)])
            turns.append({"text": "".join(editor.text), "stop": done.stop_reason})
        assert process.stdin is not None
        process.stdin.close()
        status = await asyncio.wait_for(process.wait(), 20)
    return {
        "client": "python",
        "turns": turns,
        "kinds": editor.kinds,
        "twins": editor.twins,
        "asked": editor.asked,
        "exit": status,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(converse(json.loads(sys.argv[1])))) + "\n")
