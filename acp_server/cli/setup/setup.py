"""`wholeturn setup`: asks for a provider, its key and a model, tries them once, and writes them down.

With `--provider` it asks nothing, for scripts. A key is read from a variable, from stdin or unseen from the
terminal, never from the command line, and is shown nowhere.
"""

import argparse
import os
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import trio

from acp_server.assembly.providers_and_stores import try_once
from acp_server.cli.output import described
from acp_server.cli.setup.questions import (
    CUSTOM,
    VENDORS,
    Machine,
    Plan,
    Terminal,
    Tty,
    found_server,
    plan_of,
    typed_key,
    variable_for,
    vendor,
    wanted_keys,
)
from acp_server.config.check import faults
from acp_server.config.files import file_origins
from acp_server.config.layers import Layer
from acp_server.config.load import load_user_config
from acp_server.config.paths import short, user_file
from acp_server.config.secrets import KeyedEnviron, store_key
from acp_server.config.settings import Options
from acp_server.config.writing import lines_of, with_keys, write_user_file
from runtime.providers import catalog
from runtime.values.errors import (
    AuthRequired,
    ConfigError,
    InvalidParams,
    ProviderError,
    ProviderErrorKind,
    WholeturnError,
    find_error,
)
from runtime.values.file_access import read_text
from schemas.config_values import ProviderKind

MOST_KEYS = 3
"""How often a key is asked for."""


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    text = "choose a provider and a model, store the key, try it once"
    parser = commands.add_parser("setup", help=text, description=described(text))
    names = ", ".join(one.name for one in VENDORS)
    parser.add_argument("--provider", metavar="NAME", default="", help=f"ask nothing; one of {names}")
    parser.add_argument(
        "--kind", choices=get_args(ProviderKind), help="the API, if not the provider's usual one"
    )
    parser.add_argument(
        "--name", metavar="NAME", help="what its section is called (default: the provider's name)"
    )
    parser.add_argument("--base-url", metavar="URL", default="")
    parser.add_argument("--model", metavar="NAME", default="")
    parser.add_argument("--context-window", metavar="TOKENS", type=int, default=0)
    keys = parser.add_mutually_exclusive_group()
    keys.add_argument("--key-env", metavar="VARIABLE", help="the key stays in this variable")
    keys.add_argument(
        "--key-stdin", action="store_true", help="the key is the first line of stdin; it is stored"
    )
    keys.add_argument("--no-key", action="store_true", help="the server wants none")
    parser.add_argument("--no-try", action="store_true", help="write without asking the model")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Ask or read the flags, try, write. Returns the exit status; a key that is refused changes nothing."""
    env = os.environ
    load_user_config(Options(), env)  # a file that is broken is mended first, by its owner
    terminal = Tty()
    if given.provider:
        plan = from_flags(given, env)
        if not given.no_try:
            attempt(plan, env)
    elif sys.stdin.isatty():
        plan = plan_of(terminal, Machine(env, found_server))
        plan = plan if given.no_try else tried(terminal, plan, env)
    else:
        raise InvalidParams(
            "Nobody can be asked here: run it in a terminal, or give --provider and what it needs."
        )
    return write(terminal, plan, env)


def from_flags(given: argparse.Namespace, env: Mapping[str, str]) -> Plan:
    """The plan that the flags make. Raises InvalidParams for what is missing."""
    chosen = vendor(given.provider)
    found = None if given.model or given.base_url else found_server(chosen)
    base_url = given.base_url or chosen.base_url
    model = given.model or (found.model if found else chosen.model)
    name = given.name or chosen.name
    if chosen.name == CUSTOM and not base_url:
        raise InvalidParams("--base-url is needed: the address of the server.")
    if not model:
        raise InvalidParams("--model is needed: the server was not asked or names none.")
    window = given.context_window or (found.context_window if found else 0)
    variable, key = _key(given, chosen.variable, name, env)
    return Plan(name, given.kind or chosen.kind, base_url, variable, key, model, max(window, 0))


def _key(given: argparse.Namespace, own: str, name: str, env: Mapping[str, str]) -> tuple[str, str]:
    """The variable that stands for the key, and the key if it is to be stored."""
    if given.no_key:
        return "", ""
    if given.key_stdin:
        key = sys.stdin.readline().strip()
        if not key or not key.isascii() or not key.isprintable():
            raise InvalidParams("The first line of stdin is no key.")
        return given.key_env or own or variable_for(name), key
    variable = given.key_env or own
    if variable and not KeyedEnviron(env).get(variable):
        raise InvalidParams(
            f"There is no key: {variable} is not set. Set it, or give --key-stdin or --no-key."
        )
    return variable, ""


def attempt(plan: Plan, env: Mapping[str, str]) -> None:
    """Ask the model once. Raises what keeps it from answering."""
    environ = KeyedEnviron({**env, plan.variable: plan.key} if plan.key else env)
    provider = catalog.create(plan.settings(), environ)

    async def ask() -> None:
        try:
            await try_once(provider, plan.model)
        finally:
            with trio.CancelScope(shield=True):
                await provider.aclose()

    try:
        trio.run(ask)
    except BaseExceptionGroup as group:
        raise find_error(group) or group from None


def tried(terminal: Terminal, plan: Plan, env: Mapping[str, str]) -> Plan:
    """The plan once the model has answered, with another key if one was refused. Raises InvalidParams."""
    for _ in range(MOST_KEYS):
        terminal.say(f"Asking {plan.model} …")
        try:
            attempt(plan, env)
        except (AuthRequired, ProviderError, ConfigError) as error:
            terminal.say(error.message)
            if is_about_the_key(error):
                chosen = next((one for one in VENDORS if one.name == plan.name), VENDORS[-1])
                variable, key = typed_key(terminal, chosen, plan.variable or variable_for(plan.name))
                plan = plan._replace(variable=variable, key=key)
            elif terminal.ask("Write it down all the same? (y/n)", "n").lower() in ("y", "yes"):
                return plan
            else:
                break
        else:
            terminal.say("It answers.")
            return plan
    raise InvalidParams("The model did not answer; nothing was changed.")


def is_about_the_key(error: WholeturnError) -> bool:
    """Whether another key may help."""
    if isinstance(error, ProviderError):
        return error.kind is ProviderErrorKind.AUTH
    return isinstance(error, AuthRequired)


def check_usable(path: Path, text: str | None) -> None:
    """Raises InvalidParams when the file with that text would be refused, by this command's next run too."""
    if text is None:
        return
    name = short(str(path))
    layer = Layer("user", name, str(path.parent), tomllib.loads(text), file_origins("user", name, text), "")
    if found := faults(layer):
        raise InvalidParams("\n".join(["Nothing was changed, for that could not be used:", *found]))


def write(terminal: Terminal, plan: Plan, env: Mapping[str, str]) -> int:
    """Store the key, change the file, say what is in force now. Returns the exit status."""
    path = user_file(env)
    text = read_text(path, "utf-8-sig") if path.exists() else ""
    wanted = wanted_keys(plan, tomllib.loads(text))
    edited = with_keys(text, wanted)
    check_usable(path, edited)
    if plan.key:
        terminal.say(f"The key is kept in {short(store_key(env, plan.variable, plan.key))}.")
    if edited is None:
        terminal.say(
            f"{short(str(path))} cannot be changed by this command. Put this into it:\n\n{lines_of(wanted)}"
        )
        return 1
    former = write_user_file(path, edited)
    terminal.say(f"Written: {short(str(path))}{f' (before: {former.name})' if former else ''}")
    agent = load_user_config(Options(), env).base.config.agent
    if agent.provider is None or agent.provider.name != plan.name:
        terminal.say("Something else stands above that file: see `wholeturn config show`.")
    else:
        terminal.say(f"New sessions use {agent.route.id if agent.route else plan.name}.")
    return 0
