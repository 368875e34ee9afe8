"""The command line: one parser, one module a command, imported when the command is asked for.

Without a command the flags are the server's own. Knows no command's work.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from acp_server.cli.output import Parser, ReaderGone, accept_all_text, discard_output, printing
from acp_server.config.settings import add_options, options_of
from runtime.values.errors import WholeturnError, find_error
from schemas.version import __version__

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""
READER_GONE = 141
"""The same when a pipe is closed at its other end."""
COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("acp_server.cli.run.run", "ask one question here and print the answer"),
    "demo": ("acp_server.cli.demo", "watch a whole conversation in this folder: no key, no network"),
    "sessions": ("acp_server.cli.sessions.sessions", "list, show, export, import and delete stored sessions"),
    "replay": ("acp_server.cli.sessions.replay", "make a session's model requests again and compare them"),
    "inspect": ("acp_server.cli.sessions.inspect", "show what fills the context of a stored session"),
    "simulate": (
        "acp_server.cli.sessions.simulate",
        "show what a recorded session would have sent otherwise",
    ),
    "gateway": ("acp_server.cli.gateway", "serve many clients over HTTP and WebSocket, with a dashboard"),
    "script": ("acp_server.cli.script", "play scripted JSON-RPC fixtures against this or any ACP agent"),
    "models": ("acp_server.cli.models", "models that run in this process: fetch one, list them"),
    "setup": ("acp_server.cli.setup.setup", "choose a provider and a model, store the key, try it once"),
    "editors": ("acp_server.cli.editors", "how to set up your editor, with this installation's command"),
    "doctor": ("acp_server.cli.doctor", "look for what is missing or wrong here, and say how to mend it"),
    "config": ("acp_server.cli.config", "show the settings in force and where they are from"),
    "permissions": ("acp_server.cli.permissions", "list and forget what you allowed or forbade for good"),
    "trust": ("acp_server.cli.config", "let a folder's .wholeturn.toml set everything"),
    "completion": ("acp_server.cli.completion", "print the completion of this command for a shell"),
    "man": ("acp_server.cli.completion", "show the manual page"),
}
"""Command -> (module, one line of help). A module's `register` adds its commands, each with a `run`."""


def run(arguments: Sequence[str]) -> int:
    """Run what the arguments ask for. Returns the exit status: 2 for a wrong command line."""
    accept_all_text()
    try:
        given = make_parser(arguments).read(arguments)
        status = int(given.run(given))
        with printing():
            return status
    except (WholeturnError, BaseExceptionGroup) as error:
        known = find_error(error)
        if known is None:
            raise
        if isinstance(known, ReaderGone):
            return READER_GONE
        sys.stderr.write(f"wholeturn: {known.message}\n")
        return 1
    except BrokenPipeError:
        discard_output()
        return READER_GONE
    except KeyboardInterrupt:
        return INTERRUPTED


def make_parser(arguments: Sequence[str], *, whole: bool = False) -> Parser:
    """The parser; of the commands only the one that is asked for is loaded, or all of them."""
    parser = Parser(
        prog="wholeturn",
        description="An ACP agent for your editor. Without a command it serves on stdin and stdout.",
    )
    parser.add_argument("--version", action="version", version=f"wholeturn {__version__}")
    add_options(parser)
    parser.set_defaults(run=serve)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    asked = next((word for word in arguments if word in COMMANDS), "")
    wanted = COMMANDS[asked][0] if asked else ""
    known: set[str] = set()
    for name, (module, text) in COMMANDS.items():
        if not whole and module != wanted:
            commands.add_parser(name, help=text)
        elif module not in known and (whole or name == asked):
            known.add(module)
            import_module(module).register(commands)
    return parser


def serve(given: argparse.Namespace) -> int:
    """The server, with flags."""
    from acp_server.start.start import start

    return start(options_of(given))
