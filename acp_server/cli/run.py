"""`wholeturn run "PROMPT"`: one question in this folder; the answer on stdout, everything else on stderr."""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import trio

from acp_server.acp.trim_updates import trim_facts
from acp_server.app.app import App
from acp_server.cli.output import OutputLost, described, printing
from acp_server.cli.stored_sessions import Wanted, session_of
from acp_server.commands.commands import HANDLERS
from acp_server.config.paths import absolute, here
from acp_server.config.settings import Options, SessionConfig, add_options, options_of
from acp_server.start.serve import log_to_stderr
from acp_server.wire.streams import ending_signals
from runtime.embed.silent_client import BareClient
from runtime.ports import Client, PermissionOption, PermissionOutcome
from runtime.session.session import Session
from runtime.values.errors import WholeturnError, find_error
from runtime.values.events import (
    AgentText,
    Event,
    HistoryTrimmed,
    Noticed,
    ToolCallChanged,
    ToolCallStarted,
    UsageChanged,
)
from runtime.values.prompt import Prompt, meant, with_goal
from runtime.values.texts import mended

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    text = "ask one question here and print the answer"
    parser = commands.add_parser("run", help=text, description=described(text))
    parser.add_argument("prompt", help="what to ask; - reads it from stdin")
    parser.add_argument("--cwd", help="the folder to work in (default: this one, or that of --session)")
    stored = parser.add_mutually_exclusive_group()
    stored.add_argument("--session", metavar="ID", help="go on with this stored session")
    stored.add_argument(
        "--continue", action="store_true", dest="newest", help="go on with the newest session of the folder"
    )
    parser.add_argument("--output", choices=("text", "json"), default="text", help="how to print the answer")
    add_options(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Ask and print. Returns 0, 1 for an error, 130 when interrupted."""
    log_to_stderr()
    # An argument that is not the terminal's encoding comes with lone surrogates.
    text = mended(sys.stdin.read() if given.prompt == "-" else given.prompt)
    if not text.strip():
        raise WholeturnError("The prompt is empty.")
    cwd = None if given.cwd is None and given.session else folder(given.cwd or ".")
    printer = Printer(as_json=given.output == "json")
    wanted = Wanted(cwd, given.session, newest=given.newest)
    status = trio.run(ask, options_of(given), wanted, text, printer)
    printer.close()
    return status


def folder(named: str) -> Path:
    """A folder that is there, without links. Raises WholeturnError."""
    path = Path(os.path.realpath(absolute(named, here())))
    if not path.is_dir():
        raise WholeturnError(f"{named}: there is no such folder.")
    return path


async def ask(options: Options, wanted: Wanted, text: str, printer: "Printer") -> int:
    """One session, one turn."""

    def client(_: Mapping[str, object], __: SessionConfig) -> Client:
        return printer

    app = App(options, os.environ, client)
    try:
        session = await session_of(app, wanted)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel_on_interrupt, session)
            printer.stop_reason = await turn(session, text, printer)
            nursery.cancel_scope.cancel()
        if not session.conversation.setup.kind and text.strip() not in HANDLERS:
            printer.error = "No model is configured."
    finally:
        with trio.CancelScope(shield=True):
            await app.aclose()
    if printer.error:
        return 1
    return INTERRUPTED if printer.stop_reason == "cancelled" else 0


async def turn(session: Session, text: str, printer: "Printer") -> str:
    """The turn; an error is kept for the output, its sentence is already part of the answer."""
    asked = meant(text, session.conversation.notes.commands)
    ticket = session.submit(with_goal(Prompt(asked, ({"type": "text", "text": text},))))
    try:
        return await session.run(ticket)
    except Exception as error:
        known = find_error(error)
        if known is None or isinstance(known, OutputLost):
            raise
        printer.error = known.message
        return "error"
    finally:
        printer.session_id = session.session_id


async def cancel_on_interrupt(session: Session) -> None:
    """Ctrl-C and what else ends us cancel the turn, so that its end is recorded."""
    with trio.open_signal_receiver(*ending_signals()) as signals:
        async for _ in signals:
            session.cancel()


@dataclass(slots=True)
class Printer(BareClient):
    """A `Client` at a terminal. With as_json only one object is printed, at the end."""

    as_json: bool = False
    session_id: str = ""
    stop_reason: str = ""
    error: str = ""
    message_id: str = ""
    text: list[str] = field(default_factory=list)
    calls: dict[str, dict[str, object]] = field(default_factory=dict)
    trims: list[dict[str, object]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=dict)

    async def emit(self, session_id: str, event: Event) -> None:
        """Print it, or keep it."""
        match event:
            case AgentText():
                self._say(event.message_id, event.text)
            case ToolCallStarted():
                self.calls[event.call_id] = {"title": event.title, "status": event.status}
            case ToolCallChanged():
                self._call(event)
            case HistoryTrimmed():
                self._trim(event)
            case Noticed():
                self._note(f"{event.title}: {event.description}" if event.description else event.title)
            case UsageChanged():
                self.usage = {"used": event.used, "size": event.size}
            case _:
                pass

    async def request_permission(
        self, session_id: str, call: ToolCallStarted, options: Sequence[PermissionOption]
    ) -> PermissionOutcome:
        """Nobody is there to answer, so nothing is allowed; the person hears of it."""
        self._note(f"{call.title}: not allowed; `--mode`, or a rule in [permissions], can allow it")
        return PermissionOutcome()

    def close(self) -> None:
        """End the output: a last newline, or the JSON object."""
        if not self.as_json:
            if self.text and not self.text[-1].endswith("\n"):
                with printing():
                    print()
            return
        result: dict[str, object] = {
            "sessionId": self.session_id,
            "stopReason": self.stop_reason,
            "text": "".join(self.text),
            "toolCalls": list(self.calls.values()),
            "historyTrimmed": self.trims,
            "notices": self.notices,
            "usage": self.usage,
        }
        if self.error:
            result["error"] = self.error
        with printing():
            print(json.dumps(result, ensure_ascii=False))

    def _say(self, message_id: str, text: str) -> None:
        # Another message begins on a line of its own.
        if self.message_id not in ("", message_id) and not self.text[-1].endswith("\n"):
            text = f"\n{text}"
        self.message_id = message_id
        self.text.append(text)
        if not self.as_json:
            with printing():
                print(text, end="")

    def _call(self, event: ToolCallChanged) -> None:
        call = self.calls[event.call_id]
        call["status"] = event.status
        if event.status in ("completed", "failed"):
            self._note(f"{call['title']}: {event.status}")

    def _trim(self, event: HistoryTrimmed) -> None:
        self.trims.append(trim_facts(event))
        rows, turns = event.dropped_messages, event.kept_turns
        self._note(f"history trimmed: {rows} messages left out, {turns} turns kept ({event.reason})")

    def _note(self, text: str) -> None:
        self.notices.append(text)
        if not self.as_json:
            # Both may be one terminal: a notice begins on a line of its own.
            if self.text and not self.text[-1].endswith("\n"):
                self._say(self.message_id, "\n")
            print(f"· {text}", file=sys.stderr, flush=True)
