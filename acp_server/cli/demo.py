"""`wholeturn demo`: a whole conversation to watch, with trims, a kill and a restart. Needs no key."""

import argparse
from pathlib import Path

from acp_server.cli.output import described
from acp_server.config.paths import here


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    text = "watch a whole conversation in this folder: no key, no network"
    parser = commands.add_parser("demo", help=text, description=described(text))
    local = "talk to a real model that runs on this machine instead of a script"
    parser.add_argument("--local", action="store_true", help=local)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Play it here. Returns 0 when all went as it should."""
    if given.local:
        from acp_server.programs.demo.play import play_local

        return play_local(Path(here()))
    from acp_server.programs.demo.play import play

    return play(Path(here()))
