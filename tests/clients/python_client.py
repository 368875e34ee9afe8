"""Holds a conversation with an agent through the Python SDK, and tells in one JSON line what arrived.

`python python_client.py SPEC`, where SPEC is JSON: command (list), cwd, prompts (list), offers (list of
`read`, `write`, `terminal`). All that is asked is allowed. A program of its own, since the SDK runs
on asyncio.
"""

import asyncio
import collections
import json
import os
import sys
from pathlib import Path
from typing import Any, cast

from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    CreateTerminalResponse,
    FileSystemCapabilities,
    ReadTextFileResponse,
    RequestPermissionResponse,
    TerminalExitStatus,
    TerminalOutputResponse,
    WaitForTerminalExitResponse,
)

TWIN = "wholeturn/history_trimmed"
LINE_LIMIT = 64 * 1024 * 1024


def part_of(path: Path, first: int, limit: int | None) -> str:
    """Some lines of a file; all that follow without a limit."""
    lines = path.read_text().splitlines(keepends=True)
    return "".join(lines[first : first + limit if limit else None])


class Terminals:
    """Commands in processes of their own, with all that they print."""

    def __init__(self) -> None:
        self.processes: list[asyncio.subprocess.Process] = []
        self.output: list[bytearray] = []
        self.readers: list[asyncio.Task[None]] = []

    async def start(self, command: str, args: list[str], cwd: str | None) -> str:
        """The number of a new one."""
        process = await asyncio.create_subprocess_exec(
            command, *args, cwd=cwd, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        self.processes.append(process)
        self.output.append(bytearray())
        self.readers.append(asyncio.create_task(self._read(process, self.output[-1])))
        return str(len(self.processes) - 1)

    async def _read(self, process: asyncio.subprocess.Process, into: bytearray) -> None:
        assert process.stdout is not None
        while piece := await process.stdout.read(65536):
            into += piece

    async def end(self, number: str) -> int:
        """Its exit code, once all that it printed is there."""
        code = await self.processes[int(number)].wait()
        await self.readers[int(number)]
        return code

    def text(self, number: str) -> str:
        """What it printed so far."""
        return self.output[int(number)].decode("utf-8", "replace")

    def kill(self, number: str) -> None:
        """End it, if it still runs."""
        if self.processes[int(number)].returncode is None:
            self.processes[int(number)].kill()


class Editor:
    """The client's side: collects updates, lends files and terminals, allows everything."""

    def __init__(self) -> None:
        self.terminals = Terminals()
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

    async def write_text_file(self, session_id: str, path: str, content: str, **_: Any) -> None:
        self.asked["fs/write_text_file"] += 1
        Path(path).write_text(content)  # noqa: ASYNC240 - nothing else runs meanwhile

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        self.asked["session/request_permission"] += 1
        chosen = next(option for option in options if option.kind == "allow_once")
        return RequestPermissionResponse(
            outcome=AllowedOutcome(option_id=chosen.option_id, outcome="selected")
        )

    async def create_terminal(
        self,
        session_id: str,
        command: str,
        args: Any = None,
        env: Any = None,
        cwd: str | None = None,
        **_: Any,
    ) -> CreateTerminalResponse:
        self.asked["terminal/create"] += 1
        return CreateTerminalResponse(terminal_id=await self.terminals.start(command, args or [], cwd))

    async def terminal_output(self, session_id: str, terminal_id: str, **_: Any) -> TerminalOutputResponse:
        code = self.terminals.processes[int(terminal_id)].returncode
        status = None if code is None else TerminalExitStatus(exit_code=code)
        text = self.terminals.text(terminal_id)
        return TerminalOutputResponse(output=text, truncated=False, exit_status=status)

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **_: Any
    ) -> WaitForTerminalExitResponse:
        return WaitForTerminalExitResponse(exit_code=await self.terminals.end(terminal_id))

    async def kill_terminal(self, session_id: str, terminal_id: str, **_: Any) -> None:
        self.terminals.kill(terminal_id)

    async def release_terminal(self, session_id: str, terminal_id: str, **_: Any) -> None:
        self.terminals.kill(terminal_id)


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
        wanted = spec["offers"]
        files = FileSystemCapabilities(read_text_file="read" in wanted, write_text_file="write" in wanted)
        offers = ClientCapabilities(fs=files, terminal="terminal" in wanted)
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
