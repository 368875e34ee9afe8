"""`wholeturn doctor`: all checks in their order, what each found, and how to mend it. Changes nothing.

Exit status: 0 when all works (notes are no failure), 1 when something does not. Knows what needs readable
settings and what asks others; how a check looks is in `acp_server.doctor`.
"""

import argparse
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from acp_server.cli.output import described, say, say_json
from acp_server.config.paths import absolute, here
from acp_server.config.settings import add_options, options_of
from acp_server.doctor.finding import Finding, Place, Read
from acp_server.doctor.machine import check_command, check_helpers, check_python, check_start, check_terminal
from acp_server.doctor.model import check_answer, check_model
from acp_server.doctor.settings import (
    check_effects,
    check_extras,
    check_origins,
    check_servers,
    check_trust,
    read_settings,
)
from acp_server.doctor.store import check_store
from runtime.values.errors import InvalidParams
from schemas.version import __version__

OF_SETTINGS: tuple[Callable[[Read], Iterator[Finding]], ...] = (
    check_origins,
    check_effects,
    check_extras,
    check_model,
    check_store,
    check_servers,
    check_trust,
)


def findings(place: Place, *, offline: bool, seconds: float) -> Iterator[Finding]:
    """Everything, as it is found. offline: nobody is asked. seconds: that the model has for an answer."""
    yield from check_python()
    yield from check_command(place)
    yield from check_helpers(place)
    yield from check_terminal(place)
    read, told = read_settings(place)
    yield from told
    if read is not None:
        for check in OF_SETTINGS:
            yield from check(read)
        if not offline:
            yield from check_answer(read, seconds)
    yield from check_start(place)


WIDTH = 100
COLUMN = 16
SECONDS = 20.0
LONGEST = 3600.0


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    text = "look for what is missing or wrong here, and say how to mend it"
    parser = commands.add_parser("doctor", help=text, description=f"{described(text)} Changes nothing.")
    parser.add_argument("--cwd", default=".", metavar="DIR", help="the folder of the session (default: here)")
    parser.add_argument("--offline", action="store_true", help="do not ask the model")
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=SECONDS,
        metavar="SECONDS",
        help="how long the model has for an answer",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_options(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Look and tell. Returns the exit status."""
    folder = Path(absolute(given.cwd, here()))
    if not folder.is_dir():
        raise InvalidParams(f"--cwd: {folder} is no folder.")
    place = Place(os.environ, folder, options_of(given), getattr(sys.stdout, "encoding", None) or "ascii")
    found = findings(place, offline=given.offline, seconds=given.timeout)
    return tell_json(list(found)) if given.json else tell(found)


def tell(found: Iterable[Finding]) -> int:
    """Each as it is found, then the sum."""
    counts = {"ok": 0, "note": 0, "bad": 0}
    for finding in found:
        counts[finding.status] += 1
        say("\n".join(lines_of(finding)))
    bad, notes = counts["bad"], counts["note"]
    say(f"\n{bad or 'Nothing'} to mend, {notes} to know." if bad or notes else "\nAll is well.")
    return 1 if bad else 0


def tell_json(found: list[Finding]) -> int:
    """{"version", "ok", "findings": [{"check", "status", "text", "mend"}]}."""
    bad = any(finding.status == "bad" for finding in found)
    say_json({"version": __version__, "ok": not bad, "findings": [asdict(finding) for finding in found]})
    return 1 if bad else 0


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= LONGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds up to {LONGEST:g}")
    return seconds


def lines_of(finding: Finding) -> list[str]:
    """A finding for people."""
    head = f"{finding.status:<5} {finding.check:<{COLUMN - 7}} "
    lines = textwrap.wrap(finding.text, WIDTH - COLUMN, break_long_words=False, break_on_hyphens=False)
    lines += [f"-> {finding.mend}"] if finding.mend else []
    return [f"{head if number == 0 else ' ' * COLUMN}{line}" for number, line in enumerate(lines)]
