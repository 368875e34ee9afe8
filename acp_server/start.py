"""Starts the server: takes the descriptors, answers `initialize` if it is there, then imports the rest.

Standard library only at import time. The order is the point: an editor sees the answer before trio is loaded.
"""

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from acp_server.hello import fast_hello
from acp_server.stdio import take_stdio

if TYPE_CHECKING:
    from acp_server.config.options import Options

TERMINAL_HINT = """\
wholeturn speaks the Agent Client Protocol on stdin and stdout; an editor starts it.
To see it work here:   wholeturn demo
To set up your editor: wholeturn editors
To ask one question:   wholeturn run "PROMPT"
All commands:          wholeturn --help
Waiting for JSON-RPC on stdin (Ctrl-D ends it).
"""


def start(options: "Options | None" = None) -> int:
    """Serve one client until its input ends. Returns the exit status."""
    if os.isatty(0):
        sys.stderr.write(TERMINAL_HINT)
    wire = take_stdio()
    hello = fast_hello(wire.fd_in, wire.fd_out)
    skip_plugins()
    from acp_server.serve import serve

    return serve(wire, hello, options)


def skip_plugins() -> None:
    """Have pydantic know that it has no plugins in this process.

    To find that out by itself it reads the metadata of every installed package, in front of the first answer.
    Its own switch is an environment variable, which the programs that tools run would get as well.
    """
    vars(import_module("pydantic.plugin._loader"))["_plugins"] = {}
