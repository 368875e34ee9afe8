"""`wholeturn replay SESSION`: makes every provider call of a stored session again and compares the bytes.

No model is asked and no tool runs. Exit status 0: all are the same; 1: one is not, which is named.
"""

import argparse
import json
from contextlib import aclosing
from dataclasses import dataclass

import trio

from acp_server.cli.output import described, printing
from acp_server.cli.stored_sessions import found, opened
from acp_server.config.settings import add_options, options_of
from runtime.replay.replay import Difference, Remade
from runtime.replay.stored_session import Replayed, replay_session
from runtime.values.errors import ResourceNotFound
from runtime.values.rows import Row


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    text = "make a session's model requests again from what is stored, and compare them"
    parser = commands.add_parser("replay", help=text, description=described(text))
    parser.add_argument("session", help="its id")
    parser.add_argument("--turn", type=int, metavar="N", help="tell of this turn alone, and end behind it")
    parser.add_argument("--json", action="store_true", help="a JSON object a request, and one at the end")
    parser.add_argument("--rows", action="store_true", help="with --json: also the messages of each request")
    add_options(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Replay and tell. Returns the exit status."""
    return trio.run(replay, given)


@dataclass(slots=True)
class Tally:
    """What came of it so far."""

    turns: int = 0
    requests: int = 0
    trims: int = 0
    unrecorded: int = 0

    def add(self, one: Replayed) -> None:
        """Count it."""
        self.requests += one.call is not None
        self.turns += one.call is None
        self.trims += one.trims
        self.unrecorded += one.unrecorded


async def replay(given: argparse.Namespace) -> int:
    """The work."""
    tally, difference, seen = Tally(), "", 0
    async with opened(options_of(given)) as store:
        record = await found(store, given.session)
        try:
            async with aclosing(replay_session(store, record.session_id)) as made:
                async for one in made:
                    seen = one.number
                    if given.turn is not None and one.number > given.turn:
                        break
                    if given.turn in (None, one.number):
                        tally.add(one)
                        tell(one, given)
        except Difference as found_one:
            difference = str(found_one)
    if given.turn is not None and not difference and not 1 <= given.turn <= seen:
        raise ResourceNotFound(f"There is no turn {given.turn}: the session has {seen}.")
    with printing():
        print(summary_json(tally, difference) if given.json else summary(tally, difference))
    return 1 if difference else 0


def tell(one: Replayed, given: argparse.Namespace) -> None:
    """A request for programs; for people a line a turn."""
    with printing():
        if given.json and one.call is not None:
            print(json.dumps(request_facts(one, one.call, rows=given.rows), ensure_ascii=False))
        elif not given.json and one.call is None:
            trims = f", {one.trims} trims" if one.trims else ""
            missing = f", {one.unrecorded} requests were not recorded whole" if one.unrecorded else ""
            print(f"turn {one.number}: same{trims}{missing}")


def request_facts(one: Replayed, call: Remade, *, rows: bool) -> dict[str, object]:
    """What is known of a request. iteration: the turn's provider call, from 0; attempt: from 1."""
    request = call.request
    facts: dict[str, object] = {
        "turn": one.number,
        "turnId": one.turn_id,
        "iteration": call.iteration,
        "attempt": call.attempt,
        "model": request.model,
        "rows": sum(len(segment.rows) for segment in request.segments),
        "maxOutputTokens": request.max_output_tokens,
        "sha256": call.digest,
        "same": True,
    }
    return facts | ({"messages": [row_facts(row) for row in request.rows()]} if rows else {})


def row_facts(row: Row) -> dict[str, object]:
    """A message."""
    facts: dict[str, object] = {"role": row.role, "content": row.content}
    if row.tool_calls:
        facts["toolCalls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments} for call in row.tool_calls
        ]
    if row.tool_call_id is not None:
        facts["toolCallId"] = row.tool_call_id
    return facts


def summary(tally: Tally, difference: str) -> str:
    """The end, for people."""
    missing = f"; {tally.unrecorded} could not be compared" if tally.unrecorded else ""
    made = f"{tally.requests} requests of {tally.turns} turns made again, {tally.trims} trims{missing}."
    return f"{made}\nDifferent: {difference}" if difference else f"{made} All are the same, byte for byte."


def summary_json(tally: Tally, difference: str) -> str:
    """The end, for programs."""
    facts: dict[str, object] = {
        "turns": tally.turns,
        "requests": tally.requests,
        "trims": tally.trims,
        "notRecorded": tally.unrecorded,
        "same": not difference,
    }
    return json.dumps(facts | ({"difference": difference} if difference else {}), ensure_ascii=False)
