"""What a turn costs early and late in a session, and what the session's length does to memory.

Prompts and replies of 2,000 characters, 40 pieces a reply. A long session is brought near turn 1,000 first;
then it, a fresh one at turn 50 and the bare loop at turn 50 take turns, so all are measured in the same
minute. Peak memory is the high-water mark of the long session's process at turn 50 and at its end.
"""

from acp_drive import Turn
from bench_rig import Rig, Talk
from bench_table import Row, median, quantile

EARLY = 50
MEASURED = 40


def say_in_turns(talks: dict[str, Talk]) -> dict[str, list[Turn]]:
    """The measured turns: every session says one, then every session the next."""
    turns: dict[str, list[Turn]] = {name: [] for name in talks}
    for _ in range(MEASURED):
        for name, talk in talks.items():
            turns[name].append(talk.turn())
    return turns


def measure(
    rig: Rig, late: int
) -> tuple[dict[str, list[float]], dict[tuple[str, int], float], dict[str, float]]:
    """Own milliseconds of each measured turn by session, peak megabytes by (session, turn), CPU ms a turn."""
    peak: dict[tuple[str, int], float] = {}
    with rig.ours(sample_memory=True) as ours, rig.bare(sample_memory=True) as bare:
        talks = {"late": Talk(ours), "bare late": Talk(bare)}
        for name, talk in talks.items():
            talk.advance(EARLY)
            peak[name, EARLY] = talk.agent.memory.peak_bytes() / 1e6
            talk.advance(late - MEASURED)
        with rig.ours() as fresh_ours, rig.bare() as fresh_bare:
            fresh = {"early": Talk(fresh_ours), "bare early": Talk(fresh_bare)}
            for talk in fresh.values():
                talk.advance(EARLY - MEASURED // 2)
            used = {name: talk.agent.memory.cpu_seconds() for name, talk in fresh.items()}
            turns = say_in_turns(talks | fresh)
            cpu = {name: talk.agent.memory.cpu_seconds() - used[name] for name, talk in fresh.items()}
        for name, talk in talks.items():
            peak[name, late] = talk.agent.memory.peak_bytes() / 1e6
    own = {name: rig.mock.own_ms(done) for name, done in turns.items()}
    return own, peak, {name: 1e3 * seconds / MEASURED for name, seconds in cpu.items()}


def section(rig: Rig) -> list[Row]:
    """Time rows, then memory rows."""
    late = 200 if rig.quick else 1000
    rig.mock.configure(reply_chars=2000, chunks=40, tool_loop=0, chunk_delay=0, log_pieces=False)
    own, peak, cpu = measure(rig, late)
    early, end = f"ours at {EARLY}", f"bare loop at {late}"
    middle = {name: median(values) for name, values in own.items()}
    most = {name: quantile(values, 0.9) for name, values in own.items()}
    memory = [peak["late", late], peak["late", EARLY], peak["bare late", late]]
    return [
        Row(f"a turn at {EARLY}", middle["early"], middle["bare early"], "bare loop", bound=3),
        Row("  its CPU time", cpu["early"], cpu["bare early"], "bare loop"),
        Row(f"a turn at {late}", middle["late"], middle["early"], early, bound=1.2),
        Row("  nine of ten below", most["late"], most["early"], early),
        Row("  beside the bare loop", middle["late"], middle["bare late"], end),
        Row(f"peak memory, {late} turns", memory[0], memory[1], early, unit="MB", bound=1.1),
        Row("  beside the bare loop", memory[0], memory[2], end, unit="MB"),
    ]
