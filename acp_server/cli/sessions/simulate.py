"""`wholeturn simulate TRANSCRIPT`: a recorded session under other limits, as a table, JSON or a page.

TRANSCRIPT is an exported session, `-` for stdin, or the id of a stored one. How it is played is in
`runtime.replay.simulate`.
"""

import argparse
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import trio

from acp_server.cli.output import described, printing
from acp_server.cli.sessions.sessions import source
from acp_server.cli.stored_sessions import found, opened
from acp_server.config.load import for_session, load_user_config
from acp_server.config.paths import absolute, here
from acp_server.config.settings import Options, add_options, options_of
from acp_server.programs.transcripts.lines import read_header, read_step
from acp_server.programs.transcripts.simulation_page import facts, page
from acp_server.programs.transcripts.transfer import lines_of
from runtime.ports import ContextTrimmer
from runtime.replay.simulate import Request, Simulation
from runtime.transcript.turn_record import TurnRecord, fold, read_turns
from runtime.trimming.catalog import parse_descriptor, trimmer_of
from runtime.values.errors import ConfigError, WholeturnError
from runtime.values.file_access import writing
from runtime.values.profiles import Profile, Route
from schemas.config_values import LARGEST

LIMITS: tuple[tuple[str, Any, str], ...] = (
    ("max_context_tokens", int, "tokens that a request may have"),
    ("max_history_messages", int, "turns that are kept"),
    ("context_compact_ratio", float, "share of the window that a request may have"),
    ("trim_slack_ratio", float, "share that a trim frees beyond the limit"),
    ("keep_tool_context_turns", int, "turns before the newest that keep their tool traffic"),
    ("retention", str, "recent or head-tail"),
    ("running_turn_overflow", str, "fail or shorten"),
)
"""Fields of a profile that have a flag of their own, with the type and what each is."""
CHOICES = {"retention": ("recent", "head-tail"), "running_turn_overflow": ("fail", "shorten")}


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    text = "show what a recorded session would have sent under other limits"
    parser = commands.add_parser("simulate", help=text, description=described(text))
    parser.add_argument("transcript", help="an exported session, - for stdin, or a session's id")
    for name, kind, what in LIMITS:
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, dest=name, help=what)
    parser.add_argument("--context-window", type=int, metavar="TOKENS", help="the model's window")
    text = "count:N or token-budget:TOKENS, for the rounds inside a turn"
    parser.add_argument("--loop-context", metavar="TEXT", help=text)
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="a JSON object a request, and one at the end")
    output.add_argument("--html", metavar="FILE", help="write a page with the picture")
    add_options(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Play and tell. Returns the exit status."""
    return trio.run(simulate, given)


async def simulate(given: argparse.Namespace) -> int:
    """The work."""
    options = options_of(given)
    profile = profile_of(given, options)
    requests: list[Request] = []
    async with records(given.transcript, options) as turns:
        play: Simulation | None = None
        async for turn in turns:
            if play is None:
                play = Simulation(profile, route_of(turn, given), trimmer(given, profile))
            async with aclosing(play.add(turn)) as made:
                requests += [one async for one in made]
    if not requests:
        raise WholeturnError("There is no request in this transcript.")
    tell(given, profile, requests)
    return 0


def profile_of(given: argparse.Namespace, options: Options) -> Profile:
    """The profile of the settings with the limits that were given. Raises ConfigError."""
    config = for_session(load_user_config(options, os.environ), Path(here()))
    limits = {name: value for name, _, _ in LIMITS if (value := getattr(given, name)) is not None}
    for name, values in CHOICES.items():
        if limits.get(name, values[0]) not in values:
            raise ConfigError(f"--{name.replace('_', '-')} may be {' or '.join(values)}")
    if any(isinstance(value, int | float) and not 0 <= value < LARGEST for value in limits.values()):
        raise ConfigError("a limit may not be negative or endless")
    if given.context_window is not None and given.context_window < 1:
        raise ConfigError("--context-window must be at least 1")
    if limits.get("trim_slack_ratio", 0) >= 1:
        raise ConfigError("--trim-slack-ratio must be below 1")
    return replace(config.agent.profile, dropped_turns="omit", **limits)


def trimmer(given: argparse.Namespace, profile: Profile) -> ContextTrimmer | None:
    """What bounds turns from inside. Raises ConfigError: no model is asked, so nothing can be summarised."""
    if given.loop_context is None:
        return None
    return trimmer_of(parse_descriptor(given.loop_context), profile.trim_slack_ratio, None)


def route_of(turn: TurnRecord, given: argparse.Namespace) -> Route:
    """The recorded route, with the window that was given."""
    recorded = turn.setups[0].route if turn.setups else None
    route = Route("simulated", "") if recorded is None else Route(**recorded.model_dump())
    return route if given.context_window is None else replace(route, context_window=given.context_window)


def is_file(name: str) -> bool:
    """Whether it names a file; a session's id does not."""
    return name == "-" or os.path.isfile(absolute(name, here()))


@asynccontextmanager
async def records(name: str, options: Options) -> AsyncIterator[AsyncIterator[TurnRecord]]:
    """The records of a file or of a stored session. Raises BadExport, ResourceNotFound."""
    if is_file(name):
        async with aclosing(from_file(name)) as turns:
            yield turns
        return
    async with opened(options) as store:
        record = await found(store, name)
        async with aclosing(read_turns(store, record.session_id)) as turns:
            yield turns


async def from_file(name: str) -> AsyncGenerator[TurnRecord, None]:
    """The records of an exported session."""
    with source(name) as file:
        lines = lines_of(file)
        read_header(next(lines, b""))
        pending: list[TurnRecord] = []
        for number, line in enumerate(lines, 2):
            entry = read_step(line, number)._replace(seq=number)
            for turn in fold(pending, [entry]):
                await trio.lowlevel.checkpoint()
                yield turn
        for turn in pending:
            yield turn


def tell(given: argparse.Namespace, profile: Profile, requests: list[Request]) -> None:
    """Print it, or write the page."""
    if given.html is not None:
        path = Path(absolute(given.html, here()))
        try:
            with writing(path) as file:
                file.write(page(requests, profile).encode())
        except OSError as error:
            raise WholeturnError(f"{path}: cannot be written: {error.strerror}") from None
    with printing():
        if given.json:
            for one in requests:
                print(json.dumps(facts(one), ensure_ascii=False))
            print(json.dumps(summary(requests)))
        else:
            print("\n".join([*(() if given.html else table(requests)), sentence(requests)]))


def table(requests: list[Request]) -> list[str]:
    """A line a request that lost something, and for the first and the last one."""
    head = f"{'turn':>5} {'call':>4} {'tokens':>8} {'limit':>8} {'turns':>6}  what left"
    lines = [head]
    for at, one in enumerate(requests):
        if one.gone or one.over or at in (0, len(requests) - 1):
            left = "; ".join(f"{gone.messages} messages ({gone.reason})" for gone in one.gone)
            over = "  DOES NOT FIT THE WINDOW" if one.over else ""
            turns = sum(len(gone.turns) for gone in one.gone)
            place = f"{one.turn:>5} {one.call + 1:>4} {one.total:>8} {one.target:>8} {-turns or '':>6}"
            lines.append(f"{place}  {left}{over}".rstrip())
    return lines


def summary(requests: list[Request]) -> dict[str, object]:
    """The end, for programs."""
    gone = [gone for one in requests for gone in one.gone]
    return {
        "turns": len({one.turn for one in requests}),
        "requests": len(requests),
        "trims": len(gone),
        "droppedTurns": sum(len(one.turns) for one in gone),
        "droppedMessages": sum(one.messages for one in gone),
        "largest": max(one.total for one in requests),
        "overTheWindow": sum(one.over for one in requests),
    }


def sentence(requests: list[Request]) -> str:
    """The end, for people."""
    told = summary(requests)
    over = f" {told['overTheWindow']} would not have fitted the window." if told["overTheWindow"] else ""
    return (
        f"{told['requests']} requests of {told['turns']} turns: {told['trims']} trims took "
        f"{told['droppedTurns']} turns ({told['droppedMessages']} messages); "
        f"the largest request has about {told['largest']} tokens.{over}"
    )
