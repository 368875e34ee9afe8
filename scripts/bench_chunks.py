"""What a reply in very many pieces costs, and how late a piece comes to the client.

The flood is judged by wall time, since a slow reader also slows the mock down. Lateness is measured on a
stream that is paced: from the moment at which the mock wrote a piece to that at which its text was there.
"""

import itertools

from acp_drive import Turn
from bench_rig import Exchange, Rig, Talk
from bench_table import Row, median, quantile

FLOOD = 20_000
LATEST_MS = 30.0


def lateness_ms(turn: Turn, exchange: Exchange) -> list[float]:
    """For each piece, milliseconds from its being written to its last character being with the client."""
    written = itertools.accumulate(size for size, _ in exchange.pieces)
    arrivals = []
    total = 0
    for at, update in turn.updates:
        if update.get("sessionUpdate") == "agent_message_chunk":
            total += len(update["content"]["text"])
            arrivals.append((total, at))
    late = []
    position = 0
    for reached, (_, sent) in zip(written, exchange.pieces, strict=True):
        while arrivals[position][0] < reached:
            position += 1
        late.append(1e3 * (arrivals[position][1] - sent))
    return late


def flood(rig: Rig) -> dict[str, list[float]]:
    """Wall milliseconds of the long reply, a new session each time."""
    size = FLOOD // 10 if rig.quick else FLOOD
    rig.mock.configure(reply_chars=size * 20, chunks=size, tool_loop=0, chunk_delay=0, log_pieces=False)
    seen: dict[str, list[float]] = {"ours": [], "bare": []}
    with rig.ours() as agent, rig.bare() as bare:
        agent.initialize()
        bare.initialize()
        for _ in range(3 if rig.quick else 7):
            for name, each in (("ours", agent), ("bare", bare)):
                turn = each.prompt(each.new()[1], "TURN-00001 go")
                if len(turn.text) != size * 20:
                    raise RuntimeError(f"{name} brought {len(turn.text)} of {size * 20} characters")
                seen[name].append(1e3 * turn.wall)
    return seen


def pace(rig: Rig) -> dict[str, list[float]]:
    """Lateness of every piece of a stream with a pause of 3 ms after each."""
    rig.mock.configure(reply_chars=6000, chunks=300, chunk_delay=0.003, log_pieces=True)
    seen: dict[str, list[float]] = {"ours": [], "bare": []}
    with rig.ours() as agent, rig.bare() as bare:
        talks = {"ours": Talk(agent, 100), "bare": Talk(bare, 100)}
        for talk in talks.values():
            talk.advance(1)
        for _ in range(1 if rig.quick else 3):
            for name, talk in talks.items():
                turn = talk.turn()
                seen[name] += lateness_ms(turn, rig.mock.exchanges(turn)[-1])
    rig.mock.configure(chunk_delay=0, log_pieces=False)
    return seen


def section(rig: Rig) -> list[Row]:
    """Time of the flood, then lateness; the second is judged against a fixed figure."""
    wall, late = flood(rig), pace(rig)
    count = FLOOD // 10 if rig.quick else FLOOD
    return [
        Row(f"a reply in {count:,} pieces", median(wall["ours"]), median(wall["bare"]), "bare loop", bound=2),
        Row("text late, 99 of 100 below", quantile(late["ours"], 0.99), LATEST_MS, "allowed", bound=1),
        Row("  the middle one", median(late["ours"]), median(late["bare"]), "bare loop"),
    ]
