"""Makes the manual page and the shells' completions out of the command line: `acp_server/programs/shell/`.

usage: .venv/bin/python scripts/shell_files.py     writes them; `scripts/fix` does it, too

A test compares what lies there with what would be made. The completions are shtab's; the page is written
here, since the libraries for it repeat every setting with every command and ask the terminal how wide it is.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import shtab

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from acp_server.cli.completion import SHELLS  # noqa: E402
from acp_server.cli.main import make_parser  # noqa: E402
from acp_server.cli.run.output import stream_schema  # noqa: E402

FOLDER = ROOT / "acp_server" / "programs" / "shell"
STREAM_SCHEMA = ROOT / "schemas" / "run_stream.schema.json"
SHARED = "settings"
"""The group of options that many commands have; the page names them once."""
PATHS = {"FILE": shtab.FILE, "PATH": shtab.FILE, "DIR": shtab.DIRECTORY, "CWD": shtab.DIRECTORY}
ENVIRONMENT = {
    "WHOLETURN_PROVIDER, _MODEL, _PROFILE, _BASE_URL, _API_KEY_ENV, _CONTEXT_WINDOW, _SCRIPT, "
    "_DEFAULT_AGENT, _STORE, _MODE": "Short names of settings.",
    "WHOLETURN_AGENTS__DEFAULT__MODEL": "Any setting by its key: two underscores go one level down.",
    "WHOLETURN_CONFIG_DIR, WHOLETURN_DATA_DIR": "Other folders for settings and for sessions.",
    "WHOLETURN_LOG": "debug, info, warning (the default) or error.",
    "WHOLETURN_UNSTABLE": "1 switches on what ACP has not settled yet.",
}
FILES = {
    "~/.config/wholeturn/config.toml": "The settings; below ~/Library/Application Support on macOS.",
    ".wholeturn.toml": "Settings of a project, which set limits alone until the folder is trusted.",
    "~/.local/share/wholeturn/sessions.db": "The sessions.",
}
STATUS = {
    "0": "All went well.",
    "1": "It did not; a message on stderr says why.",
    "2": "A wrong command line.",
}
ABOUT = """\
An editor starts wholeturn without arguments and speaks the Agent Client Protocol with it:
JSON\\-RPC on standard input and output. Everything else is a command for people.
"""


def made() -> dict[str, str]:
    """File name -> content, of every file."""
    parser = make_parser([], whole=True)
    mark_paths(parser)
    files = {f"wholeturn.{shell}": shtab.complete(parser, shell=shell).rstrip() + "\n" for shell in SHELLS}
    return {**files, "wholeturn.1": page(parser)}


def stream_schema_text() -> str:
    """The file that describes a line of `wholeturn run --output stream-json`."""
    return json.dumps(stream_schema(), indent=2) + "\n"


def mark_paths(parser: argparse.ArgumentParser) -> None:
    """Tell shtab which arguments are files and folders."""
    for action in parser._actions:
        name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
        if name in PATHS:
            action.complete = PATHS[name]  # type: ignore[attr-defined]
    for inner in children(parser).values():
        mark_paths(inner)


def children(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands of a parser."""
    found = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return {name: inner for action in found for name, inner in action.choices.items()}


def page(parser: argparse.ArgumentParser) -> str:
    """The manual page."""
    lines = ['.TH WHOLETURN 1 "" "Wholeturn" "User Commands"']
    lines += [
        ".SH NAME",
        f"wholeturn \\- {quoted('an agent for your editor that bounds its history by whole turns')}",
    ]
    lines += [
        ".SH SYNOPSIS",
        ".B wholeturn",
        "[\\fISETTINGS\\fR]",
        ".br",
        ".B wholeturn",
        "\\fICOMMAND\\fR ...",
    ]
    lines += [".SH DESCRIPTION", *ABOUT.splitlines(), ".SH SETTINGS", "For the server and most commands."]
    shared = next(group for group in parser._action_groups if group.title == SHARED)
    lines += [line for action in shared._group_actions for line in option(action)]
    lines += [".SH COMMANDS", *commands(parser, "wholeturn")]
    for title, entries in (("ENVIRONMENT", ENVIRONMENT), ("FILES", FILES), ("EXIT STATUS", STATUS)):
        lines += [f".SH {title}"]
        lines += [
            line for name, text in entries.items() for line in (".TP", f".B {quoted(name)}", quoted(text))
        ]
    return "\n".join(line for text in lines for line in short_lines(text)) + "\n"


def commands(parser: argparse.ArgumentParser, name: str) -> Iterator[str]:
    """Every command that does something, with its own arguments."""
    for word, inner in children(parser).items():
        full = f"{name} {word}"
        if children(inner):
            yield from commands(inner, full)
            continue
        yield f".SS {quoted(full)}"
        yield quoted(inner.description or summary(parser, word))
        groups = [group for group in inner._action_groups if group.title != SHARED]
        for action in (action for group in groups for action in group._group_actions):
            if action.dest != "help":
                yield from option(action)


def summary(parser: argparse.ArgumentParser, word: str) -> str:
    """The one line of help of a command without a description."""
    found = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    lines = {line.dest: line.help or "" for action in found for line in action._choices_actions}
    return f"{lines.get(word, '').capitalize()}."


def option(action: argparse.Action) -> Iterator[str]:
    """An option or argument with its help."""
    names = ", ".join(f"\\fB{quoted(name)}\\fR" for name in action.option_strings)
    value = action.metavar if isinstance(action.metavar, str) else "|".join(map(str, action.choices or ()))
    value = value or action.dest.upper()
    shown = f"\\fI{quoted(value)}\\fR"
    yield ".TP"
    yield shown if not names else names if action.nargs == 0 else f"{names} {shown}"
    yield quoted((action.help or "") % {"default": action.default, "prog": "wholeturn"})


def quoted(text: str) -> str:
    """Text as roff takes it literally."""
    plain = text.replace("\\", "\\e").replace("-", "\\-")
    plain = "".join(sign if sign.isascii() else f"\\[u{ord(sign):04X}]" for sign in plain)
    return re.sub(r"^(?=[.'])", r"\\&", plain, flags=re.MULTILINE)


def short_lines(text: str) -> list[str]:
    """Lines of running text of at most 79 characters; requests stay whole."""
    if len(text) < 80 or text.startswith("."):
        return [text]
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) > 78:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return [re.sub(r"^(?=[.'])", r"\\&", line) for line in lines]


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in made().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    STREAM_SCHEMA.write_text(stream_schema_text(), encoding="utf-8")
