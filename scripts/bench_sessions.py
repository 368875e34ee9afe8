"""What stored sessions cost: how soon a very long one is shown again, what that takes in memory, the list.

A load is timed from the request's being sent to the first update's being there, in a process that has
answered `initialize`: after a moment of rest, right behind that answer (the server is then still starting),
and after another session was loaded. CPU time stands beside it, since it does not wait for other programs.
"""

import time
from collections.abc import Callable
from pathlib import Path

from acp_drive import Agent
from bench_rig import Rig
from bench_session_data import EMPTY, LONG, make_store
from bench_table import Row, median, quantile

SOONEST_MS = 100.0
MOST_MB = 60.0
PAGE_MS = 50.0
IDLE = 0.5
MOST_REST = 30.0
"""Seconds: an agent is left alone, as between an editor's start and a person's click, until it has done
nothing for so long, or at most.
"""


def load_params(session: str, cwd: Path) -> dict[str, object]:
    """Of `session/load`."""
    return {"sessionId": session, "cwd": str(cwd), "mcpServers": []}


def at_rest(agent: Agent) -> None:
    """Nothing was asked of it for a while, and it has nothing more to do."""
    time.sleep(IDLE)
    before, end = -1.0, time.monotonic() + MOST_REST
    while (used := agent.memory.cpu_seconds()) != before and time.monotonic() < end:
        before = used
        time.sleep(IDLE)


def at_once(_: Agent) -> None:
    """It has just answered `initialize`."""


def after_another(agent: Agent) -> None:
    """It has loaded a session before."""
    agent.call("session/load", load_params(EMPTY, agent.cwd))
    at_rest(agent)
    agent.call("session/list", {})  # behind it, nothing of that load is on its way


def first_update_ms(rig: Rig, data: Path, before: Callable[[Agent], None]) -> tuple[float, float]:
    """Wall and CPU milliseconds until the first update of the long session."""
    with rig.ours(data=data) as agent:
        agent.initialize()
        before(agent)
        used = agent.memory.cpu_seconds()
        seconds = agent.first_update("session/load", load_params(LONG, agent.cwd))
        return 1e3 * seconds, 1e3 * (agent.memory.cpu_seconds() - used)


def loads(rig: Rig, data: Path) -> list[Row]:
    """A row for each state of the process. The first round only writes bytecode."""
    states = {"at rest": at_rest, "another loaded": after_another, "at once": at_once}
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in states}
    for round_ in range(4 if rig.quick else 10):
        for name, before in states.items():
            taken = first_update_ms(rig, data, before)
            if round_:
                seen[name].append(taken)
    rows = []
    for name, values in seen.items():
        wall, cpu = (median([value[at] for value in values]) for at in (0, 1))
        bound = None if name == "at once" else 1
        rows.append(Row(f"first update of a load, {name}", wall, SOONEST_MS, "the most allowed", bound=bound))
        rows.append(Row("  its CPU time", cpu))
    return rows


def peak_mb(rig: Rig, data: Path, session: str) -> float:
    """The high-water mark of a process that loaded a session, megabytes."""
    with rig.ours(data=data, sample_memory=True) as agent:
        agent.initialize()
        agent.call("session/load", load_params(session, agent.cwd))
        return agent.memory.peak_bytes() / 1e6


def memory(rig: Rig, data: Path) -> Row:
    """What the long session takes beyond the empty one."""
    more = peak_mb(rig, data, LONG) - peak_mb(rig, data, EMPTY)
    return Row("memory of a long load", more, MOST_MB, "the most allowed", unit="MB", bound=1)


def pages(rig: Rig, data: Path, sessions: int) -> list[Row]:
    """Every page of the list, one after the other."""
    seen: list[float] = []
    count = 0
    with rig.ours(data=data) as agent:
        agent.initialize()
        agent.call("session/list", {})
        cursor: dict[str, object] = {}
        while cursor or not seen:
            begun = time.monotonic()
            page = agent.call("session/list", cursor)
            seen.append(1e3 * (time.monotonic() - begun))
            count += len(page["sessions"])
            cursor = {"cursor": page["nextCursor"]} if "nextCursor" in page else {}
    if count != sessions:
        raise RuntimeError(f"{count} of {sessions} sessions were listed")
    most = quantile(seen, 0.99)
    return [
        Row(f"a page of {sessions:,} sessions", median(seen), PAGE_MS, "the most allowed", bound=1),
        Row("  99 of 100 below", most, PAGE_MS, "the most allowed", bound=1),
    ]


def section(rig: Rig) -> list[Row]:
    """The rows."""
    turns, sessions = (1_000, 1_000) if rig.quick else (10_000, 10_000)
    long, many = rig.folder / "long", rig.folder / "many"
    make_store(long, rig.work, turns=turns)
    make_store(many, rig.work, sessions=sessions)
    return [*loads(rig, long), memory(rig, long), *pages(rig, many, sessions)]
