"""`wholeturn models pull|list|path`: the models that can run in this process, and where their files are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from acp_server.cli.output import described, printing
from acp_server.config.paths import short
from runtime.providers.local.model_files import DEFAULT_MODEL, KNOWN, locate, missing, models_dir, pulled
from runtime.values.errors import WholeturnError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction

MEGABYTE = 1_000_000


def register(commands: _SubParsersAction[ArgumentParser]) -> None:
    """Add the command to the command line."""
    text = "models that run in this process: fetch one, list them"
    models = commands.add_parser("models", help=text, description=described(text))
    actions = models.add_subparsers(title="actions", metavar="ACTION", required=True)
    pull = actions.add_parser("pull", help="fetch a model, once")
    pull.add_argument("name", nargs="?", default=DEFAULT_MODEL, choices=sorted(KNOWN), help="which one")
    pull.set_defaults(run=pull_model)
    actions.add_parser("list", help="all models and whether they are here").set_defaults(run=list_models)
    path = actions.add_parser("path", help="the file of a model; without a name the folder of all")
    path.add_argument("name", nargs="?", help="which one")
    path.set_defaults(run=print_path)


def pull_model(given: Namespace) -> int:
    """Fetch it. Raises WholeturnError with what to do."""
    from acp_server.assembly.extras import pull

    model = KNOWN[given.name]
    with printing():
        print(f"{model.name}: {model.about}, {model.size // MEGABYTE} MB, licence {model.licence}")
    path = pull(model, models_dir(os.environ))
    with printing():
        print(f"It is here: {short(str(path))}\nTo talk to it:\n  {_command(model.name)}")
    return 0


def list_models(_: Namespace) -> int:
    """One line a model."""
    folder = models_dir(os.environ)
    here = pulled(folder)
    with printing():
        for model in KNOWN.values():
            state = "here" if model.name in here else f"wholeturn models pull {model.name}"
            print(f"{model.name:16} {model.size // MEGABYTE:6} MB  {model.licence:12} {state}")
        for name in here:
            if name not in KNOWN:
                print(f"{name:16} {_size(folder, name):6} MB  {'':12} here")
    return 0


def print_path(given: Namespace) -> int:
    """The path alone, for other programs. Raises WholeturnError for a model that is not here."""
    folder = models_dir(os.environ)
    problem = missing(given.name, folder) if given.name else ""
    if problem:
        raise WholeturnError(f"The command line {problem}.")
    with printing():
        print(locate(given.name, folder) if given.name else folder)
    return 0


def _size(folder: Path, name: str) -> int:
    return locate(name, folder).stat().st_size // MEGABYTE


def _command(name: str) -> str:
    return f'WHOLETURN_PROVIDER=local WHOLETURN_MODEL={name} wholeturn run "Tell me a short story."'
