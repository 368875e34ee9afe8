"""`wholeturn sessions show`: a transcript for people, or as JSON for programs."""

import argparse
from collections.abc import Iterable
from contextlib import aclosing

from acp_server.cli.output import say, say_json
from acp_server.cli.stored import found, line_of, warn_unreadable
from acp_server.transcripts.shown import between_text, turn_text
from runtime.errors import ResourceNotFound
from runtime.loading import read_state
from runtime.record import TurnRecord, read_turns
from runtime.restore import outcome
from runtime.stored import Store


async def show_session(store: Store, given: argparse.Namespace) -> int:
    """Print the transcript. 1 when some of what is shown cannot be read."""
    record = await found(store, given.session)
    state = read_state(record.state)
    if not given.json and given.turn is None:
        say(line_of(record))
    number, damaged = 0, False
    async with aclosing(read_turns(store, record.session_id)) as turns:
        async for turn in turns:
            number += turn.prompt is not None
            if given.turn not in (None, number):
                continue
            for key in turn.aside.unreadable:
                damaged = True
                warn_unreadable(key, "not shown")
            if given.json:
                say_json(turn_facts(number, turn))
            elif turn.prompt is None and not any(one.shown() for one in turn.iterations):
                say_lines(between_text(turn))
            else:
                say_lines(turn_text(number, turn, state, whole=given.full))
    if given.turn is not None and not 1 <= given.turn <= number:
        raise ResourceNotFound(f"There is no turn {given.turn}: the session has {number}.")
    return 1 if damaged else 0


def say_lines(lines: Iterable[str]) -> None:
    """Lines on stdout."""
    for line in lines:
        say(line)


def turn_facts(number: int, turn: TurnRecord) -> dict[str, object]:
    """A turn for programs: its steps, and how it ended."""
    return {
        "turn": number if turn.prompt is not None else None,
        "turnId": turn.turn_id,
        "prompt": None if turn.prompt is None else turn.prompt.model_dump(mode="json"),
        "iterations": [
            {
                "trims": [trim.model_dump(mode="json") for trim in iteration.trims],
                "reply": None if (reply := iteration.shown()) is None else reply.model_dump(mode="json"),
                "tools": [tool.model_dump(mode="json") for tool in iteration.tools.values()],
            }
            for iteration in turn.iterations
        ],
        "trimsAfter": [trim.model_dump(mode="json") for trim in turn.trims_after],
        "outcome": outcome(turn) if turn.prompt is not None else None,
        "unreadable": turn.aside.unreadable,
    }
