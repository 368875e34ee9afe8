"""`wholeturn editors [NAME]`: how an editor is set up, with the command of this installation filled in."""

import argparse
import os
import shutil
import sys
from pathlib import Path

from acp_server.cli.output import say
from acp_server.cli.parser import described
from acp_server.editors.catalog import COMMAND, EDITORS, configuration, page
from runtime.errors import WholeturnError


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    text = "how to set up your editor: its page, or the configuration alone"
    parser = commands.add_parser("editors", help=text, description=described(text))
    names = [editor.name for editor in EDITORS]
    parser.add_argument("name", nargs="?", choices=names, help="which one; without a name all are listed")
    parser.add_argument("--snippet", action="store_true", help="print the configuration alone")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Print it. Returns the exit status."""
    editor = next((one for one in EDITORS if one.name == given.name), None)
    if editor is None:
        say("\n".join(f"{one.name:<15}{one.title}: {one.file}" for one in EDITORS))
        return 0
    show = configuration if given.snippet else page
    say(show(editor, own_command()).removesuffix("\n"))
    return 0


def own_command() -> str:
    """The whole path of the command `wholeturn` that belongs to this interpreter, links left as they are.

    The one that was called comes first: a link in `~/.local/bin` outlives an update. Raises WholeturnError.
    """
    called, beside = Path(sys.argv[0]), Path(sys.executable).with_name(COMMAND)
    candidates = [called.absolute()] if called.name == COMMAND else []
    candidates += [beside, *filter(None, [_on_path()])]
    found = next((path for path in candidates if os.access(path, os.X_OK) and path.is_file()), None)
    if found is None:
        raise WholeturnError(
            f"There is no command {COMMAND} beside {sys.executable}: install it, e.g. with pipx or uv."
        )
    return str(found)


def _on_path() -> Path | None:
    found = shutil.which(COMMAND)
    return Path(found).absolute() if found else None
