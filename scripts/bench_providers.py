"""What a session of 200 turns takes in memory, by the API that the model is spoken to in.

The bound is 90 MB, whatever the API.
"""

from bench_rig import Rig, Talk
from bench_table import Row

TURNS = 200
MOST_MB = 90
KINDS = ("openai", "openai_responses", "anthropic", "ollama")


def peak_mb(rig: Rig, kind: str) -> float:
    """The high-water mark of one process, megabytes."""
    with rig.ours(sample_memory=True, kind=kind) as agent:
        Talk(agent).advance(TURNS)
        return agent.memory.peak_bytes() / 1e6


def section(rig: Rig) -> list[Row]:
    """A row for each kind."""
    rig.mock.configure(reply_chars=2000, chunks=40, tool_loop=0, chunk_delay=0, log_pieces=False)
    return [
        Row(f"peak memory, {kind}", peak_mb(rig, kind), MOST_MB, "the most allowed", unit="MB", bound=1)
        for kind in KINDS
    ]
