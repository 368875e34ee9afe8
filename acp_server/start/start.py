"""Starts the server: takes the descriptors, answers `initialize` if it is there, then imports the rest.

Standard library only at import time. The order is the point: an editor sees the answer before trio is loaded.
"""

import json
import os
import select
import sys
import time
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from acp_server.acp.capabilities import PROTOCOL_VERSION, BadInitialize, initialize_result
from acp_server.wire.stdio import Hello, take_stdio

if TYPE_CHECKING:
    from acp_server.config.settings import Options

PATIENCE = 0.1
"""Seconds to wait for the first line before the full server takes over."""
MAX_FIRST_LINE = 1024 * 1024
WRITE_PATIENCE = 5.0
_READ_SIZE = 65536
_MAX_ID = 2**63

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
    from acp_server.start.serve import serve

    return serve(wire, hello, options)


def skip_plugins() -> None:
    """Have pydantic know that it has no plugins in this process.

    To find that out by itself it reads the metadata of every installed package, in front of the first answer.
    Its own switch is an environment variable, which the programs that tools run would get as well.
    """
    vars(import_module("pydantic.plugin._loader"))["_plugins"] = {}


def fast_hello(fd_in: int, fd_out: int, *, patience: float = PATIENCE) -> Hello:
    """Answer a first line that is a plain `initialize` of version 1; hand over all else that was read.

    Waits at most `patience` seconds for that line. Anything that is not plain is left to the full
    server, which has the rules for it. Raises SystemExit(0) when the client has gone.
    """
    data, eof = _read_line(fd_in, patience)
    line, end, rest = data.partition(b"\n")
    greeting = _greeting(line) if end else None
    if greeting is None:
        return Hello(rest=data, eof=eof)
    answer, params = greeting
    _write(fd_out, answer)
    return Hello(params, rest, eof=eof)


def _greeting(line: bytes) -> tuple[bytes, Mapping[str, object]] | None:
    # A surrogate escape needs the mending that the full server does.
    if b"\\ud" in line.lower():
        return None
    try:
        message = json.loads(line.decode(), parse_constant=_no_constant)
        if not _is_plain_initialize(message):
            return None
        result = initialize_result(message["params"])
        # Whether a later version is spoken is a setting, and none has been read yet.
        if message["params"]["protocolVersion"] > PROTOCOL_VERSION:
            return None
    except (ValueError, RecursionError, BadInitialize):
        return None
    answer = {"jsonrpc": "2.0", "result": result, "id": message["id"]}
    encoded = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    return encoded.encode() + b"\n", message["params"]


def _is_plain_initialize(message: object) -> bool:
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return False
    request_id = message.get("id")
    plain_id = type(request_id) is str or (type(request_id) is int and -_MAX_ID <= request_id < _MAX_ID)
    return plain_id and message.get("method") == "initialize" and isinstance(message.get("params"), dict)


def _no_constant(name: str) -> object:
    raise ValueError(name)


def _read_line(fd: int, patience: float) -> tuple[bytes, bool]:
    deadline = time.monotonic() + patience
    data = b""
    while b"\n" not in data and len(data) <= MAX_FIRST_LINE:
        if not _ready(fd, deadline - time.monotonic(), write=False):
            break
        try:
            piece = os.read(fd, _READ_SIZE)
        except OSError:
            break
        if not piece:
            return data, True
        data += piece
    return data, False


def _write(fd: int, data: bytes) -> None:
    try:
        while data:
            if not _ready(fd, WRITE_PATIENCE, write=True):
                raise SystemExit(0)
            data = data[os.write(fd, data) :]
    except OSError:
        raise SystemExit(0) from None


def _ready(fd: int, seconds: float, *, write: bool) -> bool:
    """Whether `fd` can be used without waiting, within so many seconds. Windows cannot tell: False."""
    if sys.platform == "win32" or seconds < 0:
        return False
    fds = [fd]
    try:
        found = select.select([] if write else fds, fds if write else [], [], seconds)
    except (OSError, ValueError):
        return False
    return bool(found[0] or found[1])
