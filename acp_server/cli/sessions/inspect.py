"""`wholeturn inspect SESSION`: what fills the context of a stored session, as `/context` shows it in one.

Under the settings as they are now. Nothing is changed, and no model is asked.
"""

import argparse
import os
from pathlib import Path

import trio

from acp_server.app.open_sessions import viewed
from acp_server.cli.output import described, say, say_json
from acp_server.cli.stored_sessions import found, opened
from acp_server.commands.context_commands import first_numbers, meter_lines, meter_of
from acp_server.config.load import for_session, load_user_config
from acp_server.config.settings import add_options, options_of
from runtime.conversation.pin_and_expand import turn_numbers
from runtime.history.request.meter import Meter


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    text = "show what fills the context of a session, turn by turn, and what would leave it next"
    parser = commands.add_parser("inspect", help=text, description=described(text))
    parser.add_argument("session", help="its id")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_options(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Look and tell. Returns the exit status."""
    return trio.run(inspect, given)


async def inspect(given: argparse.Namespace) -> int:
    """The work."""
    options = options_of(given)
    async with opened(options) as store:
        record = await found(store, given.session)
        config = for_session(load_user_config(options, os.environ), Path(record.cwd))
        talk = await viewed(record, config, store, os.environ)
        numbers = first_numbers(await turn_numbers(store, record.session_id))
        meter, dropped = meter_of(talk), talk.keeper.state.dropped_turns
    if given.json:
        say_json(facts(meter, numbers, dropped))
    else:
        say("\n".join(meter_lines(meter, numbers, dropped)))
    return 0


def facts(meter: Meter, numbers: dict[str, int], dropped: int) -> dict[str, object]:
    """The meter for programs. Tokens; number: of the prompt that opened the turn."""
    turns = [
        {
            "turn": numbers.get(turn.turn_id),
            "turnId": turn.turn_id,
            "tokens": turn.tokens,
            "toolTokens": turn.tools,
            "collapsed": turn.collapsed,
            "savedTokens": turn.saved,
            "pinned": turn.pinned,
            "goal": turn.goal,
            "leavesNext": turn.leaves_next,
        }
        for turn in meter.turns
    ]
    return {
        "system": meter.system,
        "tools": meter.tools,
        "breadcrumb": meter.breadcrumb,
        "notes": meter.notes,
        "turns": turns,
        "estimated": meter.estimated,
        "used": meter.used,
        "trimsAbove": meter.target,
        "free": meter.free,
        "window": meter.window if meter.window_known else None,
        "droppedTurns": dropped,
    }
