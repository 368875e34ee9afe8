"""Checks of the settings: whether the files can be read, where each value is from, what has no effect."""

import os
import shlex
from collections.abc import Iterator
from importlib.util import find_spec

from acp_server.assembly.extras import MODULES, installing, is_installed
from acp_server.config.effective import settings_in_force
from acp_server.config.layers import Origin, key_text, printable
from acp_server.config.load import load_user_config, project_layer, view_for
from acp_server.config.paths import short, user_file
from acp_server.config.project_trust import are_prompts_trusted, is_trusted
from acp_server.doctor.finding import Finding, Place, Read
from acp_server.workspace.prompt_files import project_prompts
from runtime.store.common.faults import is_address
from runtime.values.errors import ConfigError

UNSAID = ("default", "preset", "derived")
"""Sources of values that nobody wrote down."""
LOG_LEVELS = ("debug", "info", "warning", "error", "critical")
EXTRAS = {
    "local": "the model runs in this process",
    "tokens": "token_counter names a real vocabulary",
    "postgres": "sessions are kept in PostgreSQL",
}
"""Extra -> the setting that needs it."""


def read_settings(place: Place) -> tuple[Read | None, list[Finding]]:
    """The settings in force there, if they can be read, and what is to be said of their files."""
    try:
        view = view_for(load_user_config(place.options, place.env), place.folder)
        return Read(place, view), list(_sources(Read(place, view)))
    except ConfigError as error:
        mend = "Mend the lines that are named; `wholeturn config path` tells where files are looked for."
        lines = error.message.splitlines()
        # Of several the first line only counts them.
        return None, [Finding("settings", "bad", line, mend) for line in lines[len(lines) > 1 :]]


def _sources(read: Read) -> Iterator[Finding]:
    files = [layer for layer in read.view.layers if layer.digest]
    for layer in files:
        yield Finding("settings", "ok", f"read: {short(layer.name)}")
    if not files:
        missing = short(str(user_file(read.place.env)))
        yield Finding("settings", "ok", f"no settings file; {missing} would be one")


def check_origins(read: Read) -> Iterator[Finding]:
    """Every value that somebody wrote down, and where. Nothing secret is among them."""
    for setting in settings_in_force(read.view, read.place.env):
        if setting.origin.source not in UNSAID:
            value = printable(str(setting.value), 120)
            yield Finding("setting", "ok", f"{key_text(setting.key)} = {value} ({_place(setting.origin)})")


def _place(origin: Origin) -> str:
    return f"{short(origin.name)}:{origin.line}" if origin.line else str(origin)


def check_effects(read: Read) -> Iterator[Finding]:
    """What is written down and changes nothing: variables that nothing reads, keys that are left out."""
    for text in read.view.config.warnings:
        yield Finding("settings", "note", text, "Correct it or take it out.")
    level = read.place.env.get("WHOLETURN_LOG", "")
    if level and level.lower() not in LOG_LEVELS:
        mend = f"Set it to one of {', '.join(LOG_LEVELS)}."
        yield Finding("settings", "note", f"WHOLETURN_LOG={printable(level, 40)} is no level.", mend)


def check_trust(read: Read) -> Iterator[Finding]:
    """Whether what this folder brings along counts."""
    place, layer, prompts = read.place, project_layer(read.place.folder), project_prompts(read.place.folder)
    open_ends = []
    if layer is not None and not is_trusted(place.env, place.folder, layer.digest):
        open_ends.append("its settings file sets limits alone")
    if prompts.commands and not are_prompts_trusted(place.env, place.folder, prompts.digest):
        open_ends.append("its prompt files are left out")
    shown = short(str(place.folder))
    if open_ends:
        mend = f"Read the files; to let them count: wholeturn trust {shlex.quote(str(place.folder))}"
        yield Finding("trust", "note", f"{shown} is not trusted: {' and '.join(open_ends)}.", mend)
    elif layer is None and not prompts.commands:
        yield Finding("trust", "ok", f"{shown} brings no settings and no prompt files")
    else:
        yield Finding("trust", "ok", f"{shown} is trusted as it is now")


def check_extras(read: Read) -> Iterator[Finding]:
    """Optional parts: those that the settings need must be installed."""
    config = read.view.config
    needed = {
        "local": any(model.provider.kind == "local" for model in config.models),
        "tokens": any(model.token_counter != "heuristic" for model in config.models),
        "postgres": is_address(config.store),
    }
    there = [extra for extra in MODULES if is_installed(extra, find_spec)]
    yield Finding("extras", "ok", f"installed: {', '.join(there) or 'none'}")
    for extra, wanted in needed.items():
        if wanted and extra not in there:
            text = f"The extra `{extra}` is not installed, but {EXTRAS[extra]}."
            yield Finding("extras", "bad", text, f"Install it: {installing(extra)}")


def check_servers(read: Read) -> Iterator[Finding]:
    """Whether the commands of the MCP servers that the settings name can be found."""
    mcp = read.view.config.mcp
    for server in mcp.servers if mcp is not None else ():
        tuning = mcp.tuning.get(server.name) if mcp is not None else None
        if server.kind != "stdio" or (tuning is not None and not tuning.enabled):
            continue
        path = server.env.get("PATH", read.place.env.get("PATH", os.defpath))
        inside = os.path.join(server.cwd or str(read.place.folder), server.command)
        found = Place({"PATH": path}, read.place.folder).program(
            inside if os.sep in server.command else server.command
        )
        name = f"mcp_servers.{server.name}"
        if found is None:
            text = f"{name}: the command {printable(server.command, 80)} is not on PATH."
            yield Finding("mcp", "bad", text, "Install it, write its whole path, or set `enabled = false`.")
        else:
            yield Finding("mcp", "ok", f"{name}: {found}")
        for variable in server.pass_env:
            if not read.place.env.get(variable):
                mend = "Set it where the editor is started, or in the editor's `env` for the agent."
                yield Finding("mcp", "note", f"{name}: {variable}, which it is to get, is not set.", mend)
