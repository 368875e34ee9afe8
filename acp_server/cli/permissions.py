"""`wholeturn permissions list` and `forget`: the answers about permission that hold for good.

Rules of the settings are shown by `wholeturn config show`. Each command returns 0, or 1 with one message.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from acp_server.cli.output import described
from acp_server.config.layers import printable
from acp_server.config.paths import absolute, answers_dir, here
from runtime.permission.remembered_answers import Answer, all_answers, forget
from runtime.values.errors import ConfigError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction
    from collections.abc import Mapping

NOTHING = "No answer is kept: every question is asked again."


def register(subparsers: _SubParsersAction[ArgumentParser]) -> None:
    """Add the command to the command line."""
    text = "list and forget what you allowed or forbade for good"
    parser = subparsers.add_parser("permissions", help=text, description=described(text))
    actions = parser.add_subparsers(dest="action", required=True)
    show = actions.add_parser("list", help="every answer, with its project")
    show.add_argument("--cwd", metavar="DIR", help="only those of this folder")
    show.set_defaults(run=run)
    drop = actions.add_parser("forget", help="ask again")
    which = drop.add_mutually_exclusive_group(required=True)
    which.add_argument("rule", nargs="?", metavar="RULE", help="the rule as `list` shows it")
    which.add_argument("--all", action="store_true", help="every rule of the folder")
    drop.add_argument("--cwd", default=".", metavar="DIR", help="the project's folder (default: here)")
    drop.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Do what the command line says."""
    try:
        return (_list if args.action == "list" else _forget)(args, os.environ)
    except (ConfigError, OSError) as error:
        print(f"wholeturn: {error}", file=sys.stderr)
        return 1


def _list(args: Namespace, env: Mapping[str, str]) -> int:
    found = _answers(env, args.cwd)
    project = ""
    for answer in found:
        if answer.project != project:
            project = answer.project
            print(printable(project, 4096))
        print(f"  {'always' if answer.effect == 'allow' else 'never':<7}{printable(str(answer.rule), 400)}")
    if not found:
        print(NOTHING)
    return 0


def _forget(args: Namespace, env: Mapping[str, str]) -> int:
    found = _answers(env, args.cwd)
    chosen = found if args.all else [answer for answer in found if str(answer.rule) == args.rule]
    if not chosen and not args.all:
        where = printable(_real(args.cwd), 4096)
        raise ConfigError(f"{where}: {printable(args.rule)} is not among the answers; see `permissions list`")
    for answer in chosen:
        forget(answer)
        print(f"Forgotten: {printable(str(answer.rule), 400)}")
    return 0


def _answers(env: Mapping[str, str], folder: str | None) -> list[Answer]:
    kept = answers_dir(env)
    found = all_answers(Path(kept)) if kept else []
    return found if folder is None else [one for one in found if one.project == _real(folder)]


def _real(folder: str) -> str:
    return os.path.realpath(absolute(folder, here()))
