"""The answer to `initialize`, and giving it before the heavy imports. Knows nothing of later messages.

Only light modules of the standard library are imported (`typing` is none, it doubles the time): an editor
waits for this answer at start-up.
The method table uses the same `initialize_result`, so that both ways give the same bytes.
"""

import json
import os
import select
import sys
import time
from collections.abc import Mapping

from runtime.errors import InvalidParams
from schemas.version import __version__

PROTOCOL_VERSION = 1
MAX_VERSION = 0xFFFF
PATIENCE = 0.1
"""Seconds to wait for the first line before the full server takes over."""
MAX_FIRST_LINE = 1024 * 1024
WRITE_PATIENCE = 5.0
UNSTABLE_VARIABLE = "WHOLETURN_UNSTABLE"
"""Set to 1, it switches the unstable parts of ACP on for every client."""
METHOD_ID = "config"
"""The id of the way to log in that the agent carries out itself."""
_READ_SIZE = 65536
_MAX_ID = 2**63


class BadInitialize(InvalidParams):
    """Parameters of `initialize` that cannot be taken."""


class Hello:
    """What was read before the full server started.

    params: of the `initialize` that was answered already; None when none was.
    rest: bytes read and not yet handled. eof: the input has ended after them.
    """

    __slots__ = ("eof", "params", "rest")

    def __init__(
        self, params: Mapping[str, object] | None = None, rest: bytes = b"", *, eof: bool = False
    ) -> None:
        self.params = params
        self.rest = rest
        self.eof = eof


def initialize_result(params: object) -> dict[str, object]:
    """The result of `initialize`. Raises BadInitialize.

    Any version is answered with the one that is spoken here; the client decides whether to go on.
    Optional parts of the parameters are not judged: a bad capability counts as not given.
    """
    version = params.get("protocolVersion") if isinstance(params, Mapping) else None
    if type(version) is not int or not 0 <= version <= MAX_VERSION:
        raise BadInitialize(f"protocolVersion must be an integer from 0 to {MAX_VERSION}")
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
            "mcpCapabilities": {"http": True, "sse": True},
            "sessionCapabilities": session_capabilities(params),
            "_meta": {
                "wholeturn": {
                    "historyTrimmed": {
                        "sessionUpdate": "history_trimmed",
                        "usageMeta": "wholeturn/history_trimmed",
                        "extNotification": "_wholeturn/history_trimmed",
                    }
                }
            },
        },
        "authMethods": auth_methods(params),
        "agentInfo": {"name": "wholeturn", "title": "Wholeturn", "version": __version__},
    }


def auth_methods(params: object) -> list[dict[str, object]]:
    """The ways to log in: always one that the agent carries out, one for a terminal where there is one."""
    methods: list[dict[str, object]] = [
        {
            "id": METHOD_ID,
            "name": "Configured provider",
            "description": "Asks the configured model with its key, out of the environment or as stored.",
        }
    ]
    if said(params, "clientCapabilities", "auth", "terminal") is True:
        methods.append(
            {
                "type": "terminal",
                "id": "setup",
                "name": "Set up in a terminal",
                "description": "Asks for a provider, its key and a model, and tries them.",
                "args": ["setup"],
            }
        )
    return methods


def said(params: object, *keys: str) -> object:
    """What stands at a path of the parameters; None for nothing."""
    here = params
    for key in keys:
        here = here.get(key) if isinstance(here, Mapping) else None
    return here


def session_capabilities(params: object) -> dict[str, object]:
    """The optional session methods, just those that will be answered."""
    offered = ("list", "resume", "close", "delete", "additionalDirectories")
    return {name: {} for name in (*offered, *(("fork",) if unstable_wanted(params) else ()))}


def unstable_wanted(params: object) -> bool:
    """Whether the parts of ACP that are not stable yet are on: by the client, or by a variable.

    The client says `clientCapabilities._meta.wholeturn.unstable: true`. A setting of the file would come too
    late: no file has been read when `initialize` is answered.
    """
    if os.environ.get(UNSTABLE_VARIABLE, "").lower() in ("1", "true"):
        return True
    return said(params, "clientCapabilities", "_meta", "wholeturn", "unstable") is True


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
