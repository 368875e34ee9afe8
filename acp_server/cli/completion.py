"""`wholeturn completion SHELL` and `wholeturn man`: files made from the command line, and where they go.

They are made by `scripts/shell_files` and ship with the package, so that printing one loads nothing.
"""

import argparse
import os
import shutil
import sys
from importlib.resources import as_file, files

from acp_server.cli.output import printing

SHELLS = {
    "bash": "~/.local/share/bash-completion/completions/wholeturn",
    "zsh": "_wholeturn in a folder of your $fpath",
    "fish": "~/.config/fish/completions/wholeturn.fish",
}
"""Where each shell looks for it by itself."""
PAGE = "wholeturn.1"


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add both commands to the command line."""
    text = "print the completion of this command for a shell"
    places = "; ".join(f"{shell}: {place}" for shell, place in SHELLS.items())
    completion = commands.add_parser("completion", help=text, description=f"Save it to {places}.")
    completion.add_argument("shell", choices=sorted(SHELLS), help="which shell")
    completion.set_defaults(run=print_completion)
    man = commands.add_parser(
        "man", help="show the manual page", description="Show the manual page; print its source into a pipe."
    )
    man.set_defaults(run=show_page)


def shipped(name: str) -> str:
    """One of the files. Raises FileNotFoundError."""
    return files("acp_server").joinpath("programs", "shell", name).read_text(encoding="utf-8")


def print_completion(given: argparse.Namespace) -> int:
    """Print it. Returns the exit status."""
    with printing():
        sys.stdout.write(shipped(f"wholeturn.{given.shell}"))
    return 0


def show_page(given: argparse.Namespace) -> int:
    """Show it with `man` in a terminal that has one, else print its source. Returns the exit status."""
    man = shutil.which("man") if sys.stdout.isatty() else None
    if man is not None:
        with as_file(files("acp_server").joinpath("programs", "shell", PAGE)) as path:
            return os.spawnv(os.P_WAIT, man, [man, str(path)])
    with printing():
        sys.stdout.write(shipped(PAGE))
    return 0
