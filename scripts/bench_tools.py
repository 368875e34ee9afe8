"""What a tool call costs: from the last byte of the model's answer that asks for it to the next request.

That is parsing, telling the client, reading the file, making the steps durable (ours), building the next
request and sending it. Both agents read the same small file from disk; the client offers no file access.
"""

import itertools

from acp_drive import Turn
from bench_rig import Mock, Rig, Talk
from bench_table import Row, median

CALLS = 5


def call_ms(mock: Mock, turn: Turn) -> list[float]:
    """Milliseconds from each answer that wanted a tool to the request that brought its result."""
    exchanges = mock.exchanges(turn)
    return [
        1e3 * (after.received - before.sent)
        for before, after in itertools.pairwise(exchanges)
        if before.is_call
    ]


def section(rig: Rig) -> list[Row]:
    """One row."""
    rig.mock.configure(reply_chars=200, chunks=4, tool_loop=CALLS, chunk_delay=0, log_pieces=False)
    rounds = 4 if rig.quick else 16
    with rig.ours() as agent, rig.bare() as bare:
        talks = {"ours": Talk(agent, 200), "bare": Talk(bare, 200)}
        turns: dict[str, list[Turn]] = {name: [] for name in talks}
        for _ in range(rounds):
            for name, talk in talks.items():
                turns[name].append(talk.turn())
    seen = {name: [ms for turn in done[1:] for ms in call_ms(rig.mock, turn)] for name, done in turns.items()}
    if not all(len(values) == CALLS * (rounds - 1) for values in seen.values()):
        raise RuntimeError(f"not every tool call was made: { {k: len(v) for k, v in seen.items()} }")
    return [Row("a tool call", median(seen["ours"]), median(seen["bare"]), "bare loop", bound=4)]
