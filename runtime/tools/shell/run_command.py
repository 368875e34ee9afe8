"""run_command: a command line, in a terminal of the client or in a process group of our own.

Either way the end of the output is kept, the time is bounded, and a cancel ends what was started.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from stat import S_ISDIR

import trio

from runtime.ports import (
    ExitStatus,
    TerminalCommand,
    ToolContext,
    ToolOutcome,
    ToolProgress,
    ToolRequest,
    ToolView,
)
from runtime.tools.arguments import Arguments, Parameter, ToolSettings, check, tool_spec
from runtime.tools.files.change_file import editor_path
from runtime.tools.sandbox.path_requests import path_request
from runtime.tools.sandbox.paths import in_thread, shorten
from runtime.tools.sandbox.roots import locate, stat_place
from runtime.tools.sandbox.sensitive_files import hides_something
from runtime.tools.shell.shell import Tail, environment, readable, run, shell
from runtime.values.errors import ToolError
from runtime.values.events import ToolKind

MAX_OUTPUT = 32_000
"""Bytes of output that the model gets: the last ones."""
_LIVE = 8_000
"""Bytes of output shown while the command runs."""
_SECONDS = 120
_MOST_SECONDS = 600
_MAX_COMMAND = 100_000
_RELEASE = 0.5

_PARAMETERS = (
    Parameter("command", "string", required=True, example="make test"),
    Parameter("cwd", "string"),
    Parameter("timeout", "integer", f"Seconds. Default: {_SECONDS}.", minimum=1, maximum=_MOST_SECONDS),
)


class RunCommand:
    """Runs inside the session's roots, as far as a command can be held there: it starts in one of them."""

    spec = tool_spec(
        "run_command",
        "Run a shell command. It gets no input. Background jobs that it leaves are stopped at its end; "
        "a daemon that made a session of its own goes on.",
        _PARAMETERS,
    )
    kind: ToolKind = "execute"

    def __init__(self, settings: ToolSettings | None = None) -> None:
        self._withheld = (settings or ToolSettings()).withheld

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        """The command itself."""
        command = arguments.get("command")
        return ToolView(_one_line(command) if isinstance(command, str) and command else "Run a command")

    async def request(self, arguments: Mapping[str, object], context: ToolContext) -> ToolRequest:
        """Runs the command. The subject is the whole command line."""
        given = check(self.spec.name, _PARAMETERS, arguments)
        command = _command(given)
        where = await path_request("execute", given.text("cwd", "."), context)
        unseen = hides_something(command.translate({9: " ", 10: " ", 13: " "}))
        risk = "it holds characters that cannot be seen" if unseen else ""
        return ToolRequest("execute", command, where.paths, outside=where.outside, risk=risk)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """Its output and how it ended; failed unless with exit code 0. Raises ToolError: it cannot start."""
        given = check(self.spec.name, _PARAMETERS, arguments)
        command, limit = _command(given), given.integer("timeout", _SECONDS)
        real, shown = await in_thread(lambda _: _folder(given.text("cwd", "."), context))
        program, *options = shell()
        wanted = TerminalCommand(program, (*options, command), shown, MAX_OUTPUT)
        terminal = await context.client.create_terminal(context.session_id, wanted)
        if terminal is not None:
            return await _in_terminal(terminal, context, limit)
        return await self._here(command, real, context, limit)

    async def _here(self, command: str, cwd: Path, context: ToolContext, limit: int) -> ToolOutcome:
        tail = Tail(MAX_OUTPUT)

        async def show() -> None:
            await context.progress(ToolProgress(tail.text(_LIVE)))

        ended = await run(command, cwd, environment(self._withheld), time_limit=limit, tail=tail, show=show)
        notes = [f"the first {tail.lost:,} bytes are left out"] if tail.lost else []
        notes += ["processes that it had left running were stopped"] if ended.left_behind else []
        return _outcome(tail.text(), ended.status, limit if ended.timed_out else 0, notes)


async def _in_terminal(terminal: str, context: ToolContext, limit: int) -> ToolOutcome:
    client, session = context.client, context.session_id
    try:
        await context.progress(ToolProgress(terminal_id=terminal))
        status: ExitStatus | None = None
        with trio.move_on_after(limit):
            status = await client.wait_for_exit(session, terminal)
        if timed_out := status is None:
            await client.kill_terminal(session, terminal)
        output = await client.terminal_output(session, terminal)
    finally:
        # Also what ends the process when the turn is cancelled.
        with trio.move_on_after(_RELEASE, shield=True):
            await client.release_terminal(session, terminal)
    tail = Tail(MAX_OUTPUT)
    tail.feed(output.text.encode("utf-8", "replace"))
    notes = ["the beginning is left out"] if output.truncated or tail.lost else []
    ended = status or output.exit or ExitStatus()
    return _outcome(tail.text(), ended, limit if timed_out else 0, notes, terminal)


def _outcome(
    text: str, status: ExitStatus, stopped_after: int, notes: list[str], terminal: str = ""
) -> ToolOutcome:
    if stopped_after:
        how = f"stopped after {stopped_after} s"
    elif status.signal:
        how = f"ended by {readable(status.signal)[:40]}"
    else:
        how = "ended, exit code not known" if status.code is None else f"exit code {status.code}"
    said = "; ".join([how, *notes] if text else [how, "no output", *notes])
    gap = "\n" if text and not text.endswith("\n") else ""
    failed = bool(stopped_after or status.signal or status.code)
    return ToolOutcome(f"{text}{gap}[{said}]", failed, terminal_id=terminal)


def _command(given: Arguments) -> str:
    command = given.text("command")
    if not command.strip():
        raise ToolError("command is empty")
    if "\0" in command or len(command) > _MAX_COMMAND:
        raise ToolError("command holds a NUL byte or is too long; put long text into a file with write_file")
    try:
        command.encode()
    except UnicodeEncodeError:
        raise ToolError("command holds half a surrogate pair") from None
    return command


def _folder(raw: str, context: ToolContext) -> tuple[Path, Path]:
    """The folder to run in: as it is, and as the editor knows it."""
    place = locate(raw, context)
    status = stat_place(place)
    if status is None or not S_ISDIR(status.st_mode):
        raise ToolError(f"cwd {shorten(place.shown)} is no folder")
    return place.path, editor_path(place, context)


def _one_line(command: str) -> str:
    return shorten(command if command.isprintable() else json.dumps(command, ensure_ascii=False), 300)
