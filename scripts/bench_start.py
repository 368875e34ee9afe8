"""How long an editor waits until the agent answers, beside an interpreter that does nothing.

Spawn to `initialize` is set against a bare interpreter's whole life; spawn to `session/new`, and to the end
of a first short turn, against a process that imports a fixed list of libraries and prints a line. All take
turns, so noise hits all alike.
"""

import subprocess
import sys
import time

from bench_rig import HERE, Rig, clean_environment
from bench_table import Row, median


def bare_interpreter() -> float:
    """Seconds of `python -c pass`."""
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", "pass"], env=clean_environment(), check=True)
    return time.monotonic() - begun


def imports(kind: str) -> float:
    """Seconds from spawning to the line that the importing process prints."""
    begun = time.monotonic()
    command = [sys.executable, str(HERE / "bench_imports.py"), kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=clean_environment()) as process:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise RuntimeError("the importing baseline did not start")
        return time.monotonic() - begun


def first_turn(rig: Rig) -> dict[str, float]:
    """Seconds from spawning to three things that a person waits for: the last is the end of a short turn."""
    begun = time.monotonic()
    with rig.ours() as agent:
        taken = {"initialize": agent.initialize()}
        seconds, session = agent.new()
        end = agent.prompt(session, "hello").end
        return taken | {"new": seconds, "turn": end - begun}


def section(rig: Rig) -> list[Row]:
    """The rows. The first round counts for nothing: it writes bytecode and warms the file cache."""
    rig.mock.configure(reply_chars=20, chunks=1, tool_loop=0, chunk_delay=0, log_pieces=False)
    seen: dict[str, list[float]] = {
        name: [] for name in ("bare", "light", "whole", "initialize", "new", "turn")
    }
    for round_ in range(6 if rig.quick else 21):
        taken = {"bare": bare_interpreter(), "light": imports("light"), "whole": imports("whole")}
        for name, seconds in (taken | first_turn(rig)).items():
            if round_:
                seen[name].append(1e3 * seconds)
    figures = {name: median(values) for name, values in seen.items()}
    return [
        Row("spawn to initialize", figures["initialize"], figures["bare"], "bare interpreter", bound=3),
        Row("spawn to session/new", figures["new"], figures["light"], "trio and a list", bound=1.3),
        Row("spawn to a turn's end", figures["turn"], figures["whole"], "with pydantic, HTTP", bound=1.6),
    ]
