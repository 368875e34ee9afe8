"""`wholeturn run "PROMPT"`: one question in this folder; the answer on stdout, everything else on stderr.

For scripts: limits and permissions by flags, a reply that fits a schema, an exit status by stop reason.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import trio

from acp_server.app.app import App, ClientFactory
from acp_server.cli.output import OutputLost, described
from acp_server.cli.run.output import STATUSES, Printer
from acp_server.cli.run.reply_schema import ReplySchema
from acp_server.cli.stored_sessions import Wanted, session_of
from acp_server.commands.commands import HANDLERS
from acp_server.config.paths import absolute, here
from acp_server.config.settings import Options, SessionConfig, add_options, options_of
from acp_server.start.serve import log_to_stderr
from acp_server.wire.streams import ending_signals
from runtime.permission.patterns import RuleError
from runtime.permission.rules import parse_allow
from runtime.ports import Client
from runtime.session.session import Session
from runtime.values.errors import WholeturnError, find_error
from runtime.values.profiles import Profile
from runtime.values.prompt import Prompt, meant, with_goal
from runtime.values.texts import mended

EXIT_STATUS = (
    "Exit status: 0 when the model ended its turn, 1 an error, 2 a wrong command line, 3 the reply was cut "
    "at its limit, 4 --max-turns was reached, 5 the model refused, 6 the reply does not fit --schema, "
    "130 interrupted."
)


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    text = "ask one question here and print the answer"
    parser = commands.add_parser("run", help=text, description=described(text), epilog=EXIT_STATUS)
    parser.add_argument("prompt", help="what to ask; - reads it from stdin")
    parser.add_argument("--cwd", help="the folder to work in (default: this one, or that of --session)")
    stored = parser.add_mutually_exclusive_group()
    stored.add_argument("--session", metavar="ID", help="go on with this stored session")
    stored.add_argument(
        "--continue", action="store_true", dest="newest", help="go on with the newest session of the folder"
    )
    parser.add_argument(
        "--output",
        choices=("text", "json", "stream-json"),
        default="text",
        help="how to print the answer; stream-json: a line of JSON an event, as they come, the result last",
    )
    parser.add_argument("--max-turns", type=positive, metavar="N", help="at most N rounds of tool calls")
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        type=rule,
        metavar="RULE",
        help="allow a tool call, as in [permissions]",
    )
    parser.add_argument(
        "--schema", metavar="FILE", help="a JSON schema that the reply must fit; asked again twice"
    )
    add_options(parser)
    parser.set_defaults(run=run)


def positive(text: str) -> int:
    """A count from a command line. Raises ValueError."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1: {text}")
    return number


def rule(text: str) -> str:
    """A permission rule from a command line, as it stands. Raises ArgumentTypeError."""
    try:
        parse_allow(text)
    except RuleError as error:
        raise argparse.ArgumentTypeError(f"{text!r} {error}") from None
    return text


class Limits(NamedTuple):
    """What this one run is given beside the settings. max_turns: None as the profile says."""

    max_turns: int | None = None
    allow: tuple[str, ...] = ()

    def applied(self, config: SessionConfig) -> SessionConfig:
        """The settings with them."""
        permissions = config.permissions._replace(allow=(*config.permissions.allow, *self.allow))
        agent = config.agent._replace(profile=self._profile(config.agent.profile))
        profiles = tuple(map(self._profile, config.profiles))
        return config._replace(permissions=permissions, agent=agent, profiles=profiles)

    def _profile(self, profile: Profile) -> Profile:
        return profile if self.max_turns is None else replace(profile, max_tool_iterations=self.max_turns)


NO_LIMITS = Limits()


class RunApp(App):
    """`App` for one run, with its limits."""

    def __init__(
        self, options: Options, env: Mapping[str, str], client: ClientFactory, limits: Limits = NO_LIMITS
    ) -> None:
        super().__init__(options, env, client)
        self._limits = limits

    def config(self, cwd: Path) -> SessionConfig:
        """See App."""
        return self._limits.applied(super().config(cwd))


def run(given: argparse.Namespace) -> int:
    """Ask and print. Returns the exit status, see `EXIT_STATUS`."""
    log_to_stderr()
    # An argument that is not the terminal's encoding comes with lone surrogates.
    text = mended(sys.stdin.read() if given.prompt == "-" else given.prompt)
    if not text.strip():
        raise WholeturnError("The prompt is empty.")
    schema = None if given.schema is None else ReplySchema.read(absolute(given.schema, here()))
    if schema is not None and text.split(maxsplit=1)[0] in HANDLERS:
        raise WholeturnError("--schema goes with a question; a command's answer is not the model's.")
    cwd = None if given.cwd is None and given.session else folder(given.cwd or ".")
    printer = Printer(output=given.output, quiet=schema is not None)
    wanted = Wanted(cwd, given.session, newest=given.newest)
    limits = Limits(given.max_turns, tuple(given.allow))
    make = partial(RunApp, options_of(given), os.environ, limits=limits)
    status = trio.run(ask, make, wanted, text, printer, schema)
    printer.close()
    return status


def folder(named: str) -> Path:
    """A folder that is there, without links. Raises WholeturnError."""
    path = Path(os.path.realpath(absolute(named, here())))
    if not path.is_dir():
        raise WholeturnError(f"{named}: there is no such folder.")
    return path


async def ask(
    make: Callable[[ClientFactory], App],
    wanted: Wanted,
    text: str,
    printer: Printer,
    schema: ReplySchema | None = None,
) -> int:
    """One session, one turn; more of them while the reply does not fit the schema."""

    def client(_: Mapping[str, object], __: SessionConfig) -> Client:
        return printer

    app = make(client)
    try:
        session = await session_of(app, wanted)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel_on_interrupt, session)
            if schema is None:
                printer.result.stop_reason = await turn(session, text, printer)
            else:
                await fitting(session, text, printer, schema)
            nursery.cancel_scope.cancel()
        if not session.conversation.setup.kind and text.strip() not in HANDLERS:
            printer.result.error = "No model is configured."
    finally:
        with trio.CancelScope(shield=True):
            await app.aclose()
    return (
        STATUSES["error"]
        if printer.result.error and printer.result.stop_reason != "schema"
        else STATUSES[printer.result.stop_reason]
    )


async def fitting(session: Session, text: str, printer: Printer, schema: ReplySchema) -> None:
    """A turn whose reply fits the schema, asked again with the reason. printer: gets the value."""
    asked = schema.asked(text)
    for _ in range(1 + schema.TRIES_AGAIN):
        printer.result.stop_reason = await turn(session, asked, printer)
        if printer.result.stop_reason != "end_turn":
            return
        printer.result.value, reason = schema.judged(printer.last_message())
        if not reason:
            return
        asked = schema.asked_again(reason)
    printer.result.stop_reason, printer.result.error = (
        "schema",
        f"The reply does not fit the schema: {reason}",
    )
    print(f"· {printer.result.error}", file=sys.stderr, flush=True)


async def turn(session: Session, text: str, printer: Printer) -> str:
    """The turn; an error is kept for the output, its sentence is already part of the answer."""
    asked = meant(text, session.conversation.notes.commands)
    ticket = session.submit(with_goal(Prompt(asked, ({"type": "text", "text": text},))))
    try:
        return await session.run(ticket)
    except Exception as error:
        known = find_error(error)
        if known is None or isinstance(known, OutputLost):
            raise
        printer.result.error = known.message
        return "error"
    finally:
        printer.result.session_id = session.session_id


async def cancel_on_interrupt(session: Session) -> None:
    """Ctrl-C and what else ends us cancel the turn, so that its end is recorded."""
    with trio.open_signal_receiver(*ending_signals()) as signals:
        async for _ in signals:
            session.cancel()
