"""The client as the core sees it: told what happens, asked for files, terminals, permission, answers.

Knows `Wire` only, nothing of how messages are encoded or written. Every answer may be missing, late or
wrong: what cannot be read becomes the careful value. A method is called only if the client declared it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn, Protocol

import trio

from acp_server.acp.client_options import AcpSettings, WireOptions
from acp_server.acp.updates import call_fields, updates
from acp_server.wire.errors import METHOD_NOT_FOUND, ClientCallError
from runtime.ports import (
    Client,
    ExitStatus,
    PermissionOption,
    PermissionOutcome,
    Question,
    TerminalCommand,
    TerminalOutput,
)
from runtime.values.errors import ToolError
from runtime.values.events import Event, HistoryTrimmed, ToolCallStarted

Facts = Mapping[object, object]


def content(result: object) -> str | None:
    """The text of a file; None when there is none."""
    found = _facts(result).get("content")
    return found if isinstance(found, str) else None


def terminal_id(result: object) -> str:
    """The id of a new terminal. Raises ToolError."""
    found = _facts(result).get("terminalId")
    if not isinstance(found, str) or not found:
        raise ToolError("the editor started no terminal")
    return found


def terminal_output(result: object) -> TerminalOutput:
    """What a terminal shows."""
    facts = _facts(result)
    text, status = facts.get("output"), facts.get("exitStatus")
    return TerminalOutput(
        text if isinstance(text, str) else "",
        facts.get("truncated") is True,
        exit_status(status) if isinstance(status, Mapping) else None,
    )


def exit_status(result: object) -> ExitStatus:
    """How a process ended, as far as it was told."""
    facts = _facts(result)
    code, signal = facts.get("exitCode"), facts.get("signal")
    return ExitStatus(
        code if type(code) is int else None, signal if isinstance(signal, str) and signal else None
    )


def permission_outcome(result: object, options: Sequence[PermissionOption]) -> PermissionOutcome:
    """Which of the options was chosen. Only an exact answer chooses one."""
    outcome = _facts(_facts(result).get("outcome"))
    if outcome.get("outcome") == "cancelled":
        return PermissionOutcome(cancelled=True)
    if outcome.get("outcome") != "selected":
        return PermissionOutcome()
    chosen = outcome.get("optionId")
    return PermissionOutcome(next((option for option in options if option.option_id == chosen), None))


FIELD = "answer"


def form(question: Question) -> dict[str, object]:
    """The schema of a form with one field."""
    field: dict[str, object] = {"type": "string", "title": "Answer"}
    if question.choices:
        field["enum"] = list(question.choices)
    else:
        field["minLength"] = 1
    return {"type": "object", "properties": {FIELD: field}, "required": [FIELD]}


def form_answer(result: object, question: Question) -> str | None:
    """What was answered; None when it was declined, or is nothing that the form allows."""
    facts = _facts(result)
    answer = _facts(facts.get("content")).get(FIELD)
    if facts.get("action") != "accept" or not isinstance(answer, str) or not answer.strip():
        return None
    return answer if not question.choices or answer in question.choices else None


def _facts(value: object) -> Facts:
    return value if isinstance(value, Mapping) else {}


READ_METHOD = "fs/read_text_file"
WRITE_METHOD = "fs/write_text_file"
QUESTION_METHOD = "elicitation/create"
PERMISSION_METHOD = "session/request_permission"
READ_TIME_LIMIT = 10.0
"""Seconds to wait for a client's file before the disk is used: clients are known that never answer."""
ANSWER_TIME_LIMIT = 30.0
"""Seconds to wait for what a client does at once: it writes a file, starts a terminal, tells its output."""
END_TIME_LIMIT = 2.0
"""Seconds to wait for a terminal that is given up: nobody needs the answer."""


class Wire(Protocol):
    """A connection's sending side."""

    async def notify(self, method: str, params: dict[str, object]) -> None:
        """Queue a notification, in order with all that was queued before; waits for a slow client."""
        ...

    def notify_nowait(self, method: str, params: dict[str, object]) -> None:
        """The same without waiting."""
        ...

    async def call(self, method: str, params: dict[str, object]) -> object:
        """Ask and wait for the result. Raises ClientCallError for an error reply or a lost connection."""
        ...


class Edition(Protocol):
    """A version of ACP beside the first, while a connection speaks it."""

    def make_client(self, wire: Wire, params: Mapping[str, object], settings: AcpSettings) -> Client:
        """The client of the connection. params: of `initialize`."""
        ...


class AcpClient:
    """`runtime.ports.Client` over a connection; one for all sessions of that connection."""

    def __init__(self, wire: Wire, options: WireOptions) -> None:
        self._wire = wire
        self._options = options

    async def emit(self, session_id: str, event: Event) -> None:
        """Queue the event's messages. A trim is told whole or not at all, and nothing comes between."""
        first, *others = updates(session_id, event, self._options)
        await self._wire.notify(*first)
        for frame in others:
            if isinstance(event, HistoryTrimmed):
                self._wire.notify_nowait(*frame)
            else:
                await self._wire.notify(*frame)

    async def read_text_file(self, session_id: str, path: Path) -> str | None:
        """The file as the editor has it. None (use the disk) when it is not offered or does not come."""
        if not self._options.read_text_file:
            return None
        with trio.move_on_after(READ_TIME_LIMIT):
            try:
                params: dict[str, object] = {"sessionId": session_id, "path": str(path)}
                return content(await self._wire.call(READ_METHOD, params))
            except ClientCallError:
                return None
        return None

    async def write_text_file(self, session_id: str, path: Path, text: str) -> bool:
        """Write through the editor. False (use the disk) when it is not offered.

        Raises ToolError for any other refusal: what the editor does not want may not happen behind its back.
        """
        if not self._options.write_text_file:
            return False
        try:
            await self._bounded(WRITE_METHOD, {"sessionId": session_id, "path": str(path), "content": text})
        except ClientCallError as error:
            if error.code == METHOD_NOT_FOUND:
                return False
            _refused("write the file", error)
        return True

    async def create_terminal(self, session_id: str, command: TerminalCommand) -> str | None:
        """Start it in the client's terminal. None (run it here) when there are none; else as for a write."""
        if not self._options.terminal:
            return None
        params: dict[str, object] = {
            "sessionId": session_id,
            "command": command.command,
            "args": list(command.arguments),
            "cwd": str(command.cwd),
            "outputByteLimit": command.output_limit,
        }
        try:
            return terminal_id(await self._bounded("terminal/create", params))
        except ClientCallError as error:
            if error.code == METHOD_NOT_FOUND:
                return None
            _refused("start a terminal", error)

    async def terminal_output(self, session_id: str, terminal_id: str) -> TerminalOutput:
        """What the terminal shows now."""
        params: dict[str, object] = {"sessionId": session_id, "terminalId": terminal_id}
        try:
            return terminal_output(await self._bounded("terminal/output", params))
        except ClientCallError as error:
            _refused("tell the terminal's output", error)

    async def wait_for_exit(self, session_id: str, terminal_id: str) -> ExitStatus:
        """Waits without a limit of its own: the caller has one."""
        params: dict[str, object] = {"sessionId": session_id, "terminalId": terminal_id}
        try:
            return exit_status(await self._wire.call("terminal/wait_for_exit", params))
        except ClientCallError as error:
            _refused("wait for the terminal", error)

    async def kill_terminal(self, session_id: str, terminal_id: str) -> None:
        """End its process."""
        await self._give_up("terminal/kill", session_id, terminal_id)

    async def release_terminal(self, session_id: str, terminal_id: str) -> None:
        """Give it up; its process ends."""
        await self._give_up("terminal/release", session_id, terminal_id)

    async def request_permission(
        self, session_id: str, call: ToolCallStarted, options: Sequence[PermissionOption]
    ) -> PermissionOutcome:
        """Ask the person. An error, null, or an option that was not on offer allows nothing."""
        params: dict[str, object] = {
            "sessionId": session_id,
            "toolCall": call_fields(call),
            "options": [
                {"optionId": option.option_id, "name": option.name, "kind": option.kind} for option in options
            ],
        }
        try:
            return permission_outcome(await self._wire.call(PERMISSION_METHOD, params), options)
        except ClientCallError:
            return PermissionOutcome()

    def takes_questions(self) -> bool:
        """Whether the client shows forms."""
        return self._options.questions

    async def ask(self, session_id: str, question: Question) -> str | None:
        """The person's answer to a form of one field. An error, null or a refusal is none."""
        if not self._options.questions:
            return None
        params: dict[str, object] = {
            "sessionId": session_id,
            "mode": "form",
            "message": question.text,
            "requestedSchema": form(question),
        }
        try:
            return form_answer(await self._wire.call(QUESTION_METHOD, params), question)
        except ClientCallError:
            return None

    async def _bounded(self, method: str, params: dict[str, object]) -> object:
        """The answer. Raises ToolError when none comes in time."""
        with trio.move_on_after(ANSWER_TIME_LIMIT):
            return await self._wire.call(method, params)
        raise ToolError(f"the editor did not answer {method} within {ANSWER_TIME_LIMIT:g} s")

    async def _give_up(self, method: str, session_id: str, terminal_id: str) -> None:
        with trio.move_on_after(END_TIME_LIMIT):
            try:
                await self._wire.call(method, {"sessionId": session_id, "terminalId": terminal_id})
            except ClientCallError:
                return


def _refused(what: str, error: ClientCallError) -> NoReturn:
    raise ToolError(f"the editor would not {what}: {error.message[:500]}") from error
