"""Measures the agent beside its baselines and judges the ratios. Run it as `scripts/bench`.

Absolute figures are this machine's; the ratios are what counts, both sides measured in the same run and
taking turns. Sections: start, turns (with memory), tools, chunks, providers, retention, sessions, fleet,
gateways. By default all.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import bench_chunks
import bench_fleet
import bench_gateways
import bench_providers
import bench_retention
import bench_sessions
import bench_start
import bench_tools
import bench_turns
from bench_rig import Rig
from bench_table import Row, render

SECTIONS = {
    "start": bench_start.section,
    "turns": bench_turns.section,
    "tools": bench_tools.section,
    "chunks": bench_chunks.section,
    "providers": bench_providers.section,
    "retention": bench_retention.section,
    "sessions": bench_sessions.section,
    "fleet": bench_fleet.section,
    "gateways": bench_gateways.section,
}
SAME_AS = {"memory": "turns"}
KNOWN = (*SECTIONS, *SAME_AS)


def wanted(names: list[str]) -> list[str]:
    """The sections to run, in the table's order, each once."""
    chosen = {SAME_AS.get(name, name) for name in names}
    return [name for name in SECTIONS if not chosen or name in chosen]


def main() -> int:
    """Run the sections, print the table; 1 when a bound is broken and --strict asks for it."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(KNOWN))
    parser.add_argument("--strict", action="store_true", help="exit status 1 when a bound is broken")
    parser.add_argument("--quick", action="store_true", help="fewer repeats and shorter sessions")
    parser.add_argument("--agent", default="wholeturn", help="what to measure: wholeturn, bare, or a command")
    options = parser.parse_args()
    if unknown := sorted(set(options.sections) - set(KNOWN)):
        parser.error(f"no such section: {', '.join(unknown)}; there are {', '.join(KNOWN)}")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        for name in wanted(options.sections):
            (Path(folder) / name).mkdir()
            with Rig(Path(folder) / name, options.agent, quick=options.quick) as rig:
                print(f"measuring: {name} ...", file=sys.stderr, flush=True)
                rows += SECTIONS[name](rig)
    version = ".".join(map(str, sys.version_info[:3]))
    print(f"Python {version}, {os.cpu_count()} cores, medians; the bound is on the ratio")
    print(render(rows))
    broken = [row.what for row in rows if row.verdict == "OVER"]
    if broken:
        print(f"Over the bound: {', '.join(broken)}")
    return bool(broken and options.strict)


if __name__ == "__main__":
    sys.exit(main())
