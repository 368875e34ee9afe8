"""How long an editor waits until the agent answers, beside an interpreter that does nothing.

Spawn to `initialize` is set against a bare interpreter's whole life; spawn to `session/new` against a
process that imports the same libraries and prints a line. All four take turns, so noise hits all alike.
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


def imports() -> float:
    """Seconds from spawning to the line that the importing process prints."""
    begun = time.monotonic()
    command = [sys.executable, str(HERE / "bench_imports.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=clean_environment()) as process:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise RuntimeError("the importing baseline did not start")
        return time.monotonic() - begun


def section(rig: Rig) -> list[Row]:
    """The rows. The first round counts for nothing: it writes bytecode and warms the file cache."""
    seen: dict[str, list[float]] = {"bare": [], "imports": [], "initialize": [], "new": []}
    for round_ in range(6 if rig.quick else 21):
        taken = {"bare": bare_interpreter(), "imports": imports()}
        with rig.ours() as agent:
            taken |= {"initialize": agent.initialize(), "new": agent.new()[0]}
        for name, seconds in taken.items():
            if round_:
                seen[name].append(1e3 * seconds)
    figures = {name: median(values) for name, values in seen.items()}
    return [
        Row("spawn to initialize", figures["initialize"], figures["bare"], "bare interpreter", bound=3),
        Row("spawn to session/new", figures["new"], figures["imports"], "imports, one model", bound=1.3),
    ]
