"""`wholeturn config show`, `wholeturn config path` and `wholeturn trust`: settings for people's eyes.

Knows no server. Each command returns its exit status: 0, or 1 with one message on stderr.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from acp_server.config.load import Loaded, load_user_config, project_layer, view_for
from acp_server.config.paths import PROJECT_FILE, absolute, config_dir, default_store, here, user_file
from acp_server.config.settings import Options, add_options, options_of
from runtime.values.errors import ConfigError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction

FAILED = 1


def register(subparsers: _SubParsersAction[ArgumentParser]) -> None:
    """Add `config` and `trust` to the command line; `run` serves both."""
    config = subparsers.add_parser("config", help="show the settings in force and where they are from")
    actions = config.add_subparsers(dest="action", required=True)
    show = actions.add_parser("show", help="every setting with its value and its source")
    show.add_argument("--json", action="store_true", help="as JSON")
    show.add_argument("--cwd", default=".", metavar="DIR", help="the folder of the session (default: here)")
    add_options(show)
    show.set_defaults(run=run, do=_show)
    actions.add_parser("path", help="where settings are looked for").set_defaults(run=run, do=_path)
    trust = subparsers.add_parser("trust", help=f"let a folder's {PROJECT_FILE} and prompt files count")
    what = trust.add_mutually_exclusive_group(required=True)
    what.add_argument("folder", nargs="?", metavar="DIR", help="trust its files as they are now")
    what.add_argument("--revoke", metavar="DIR", help="trust it no longer")
    what.add_argument("--list", action="store_true", help="the folders that are trusted")
    trust.set_defaults(run=run, do=_trust)


def run(args: Namespace) -> int:
    """Do what the command line says. Returns the exit status."""
    do = cast("Callable[[Namespace, Mapping[str, str]], None]", args.do)
    try:
        do(args, os.environ)
    except ConfigError as error:
        print(f"wholeturn: {error}", file=sys.stderr)
        return FAILED
    return 0


def _show(args: Namespace, env: Mapping[str, str]) -> None:
    # The listing is loaded here alone, not by every start of the command.
    from acp_server.config.effective import as_json, as_text, settings_in_force

    view = view_for(load_user_config(options_of(args), env), _folder(args.cwd))
    render = as_json if args.json else as_text
    print(render(view, settings_in_force(view, env), _untrusted(_folder(args.cwd), env)))


def _untrusted(folder: Path, env: Mapping[str, str]) -> bool:
    from acp_server.config.project_trust import is_trusted

    project = project_layer(folder)
    return project is not None and not is_trusted(env, folder, project.digest)


def _path(args: Namespace, env: Mapping[str, str]) -> None:
    rows = {
        "user": user_file(env),
        "project": _folder(".") / PROJECT_FILE,
        "trusted": config_dir(env) / "trusted",
        "store": Path(default_store(env)),
    }
    for name, path in rows.items():
        print(f"{name:<9}{path}{'' if path.exists() else ' (not there)'}")


def _trust(args: Namespace, env: Mapping[str, str]) -> None:
    from acp_server.config import project_trust as trust

    if args.list:
        for entry in trust.trusted_folders(env):
            print(trust.described(entry))
    elif args.revoke is not None:
        known = trust.revoke(env, _folder(args.revoke))
        print(f"{_folder(args.revoke)}: {'no longer trusted' if known else 'was not trusted'}")
    else:
        _trust_folder(_folder(args.folder), load_user_config(Options(), env))


def _trust_folder(folder: Path, loaded: Loaded) -> None:
    from acp_server.config import check, combine
    from acp_server.config import project_trust as project
    from acp_server.config import project_trust as trust
    from acp_server.config.layers import key_text
    from acp_server.workspace.prompt_files import project_prompts

    layer, prompts = project_layer(folder), project_prompts(folder)
    if layer is None and not prompts.commands:
        raise ConfigError(f"{folder} has no {PROJECT_FILE} and no prompt files")
    if layer is not None:
        combine.raise_faults(check.faults(layer))
    trust.trust(loaded.env, folder, "" if layer is None else layer.digest, prompts.digest)
    if layer is not None:
        print(f"Trusted: {layer.name} (sha256 {layer.digest[:12]}…), until it changes.")
        for key, _ in project.admit(layer, loaded.base.merged.tree).refused:
            print(f"  line {layer.find(key).line}: {key_text(key)} now counts")
    if prompts.commands:
        names = ", ".join(f"/{command.name}" for command in prompts.commands)
        print(f"Trusted: the prompt files {names}, until one of them changes.")


def _folder(name: str) -> Path:
    return Path(absolute(name, here()))
