"""Checks of the machine: Python, the command, the terminal, helpers on PATH, and a start of the server."""

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from acp_server.doctor.finding import Finding, Place
from schemas.version import __version__

OLDEST = (3, 11)
HELPERS = {
    "rg": ("search", "searches are slower", "Install ripgrep."),
    "git": ("git", "the model cannot look at changes and history", "Install git."),
}
"""Command -> (name of the check, what is worse without it, what to do)."""
SLOW_START = 1.0
"""Seconds to the answer to `initialize` that an editor's user begins to notice."""
START_PATIENCE = 20.0
_WORDS = 4096
HELLO = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'
SERVER = (sys.executable, "-P", "-m", "acp_server")
"""-P: what lies in the folder is not looked at for modules."""


def check_python(version: tuple[int, ...] = tuple(sys.version_info[:3])) -> Iterator[Finding]:
    """The interpreter that runs this."""
    shown = ".".join(map(str, version))
    if version < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        yield Finding(
            "python", "bad", f"Python {shown} is too old.", f"Install it with Python {wanted} or newer."
        )
    else:
        yield Finding("python", "ok", f"Python {shown}, {sys.executable}")


def check_command(place: Place) -> Iterator[Finding]:
    """Whether an editor that knows the same PATH finds this installation."""
    found, own = place.program("wholeturn"), Path(sys.executable).with_name("wholeturn")
    if found is None:
        mend = "Give editors its whole path: `wholeturn editors NAME` prints it. Or put its folder on PATH."
        yield Finding("command", "note", f"wholeturn {__version__}; its command is not on PATH.", mend)
    elif own.exists() and not os.path.samefile(found, own):
        mend = "Give editors the whole path: `wholeturn editors NAME` prints it."
        yield Finding("command", "note", f"wholeturn {__version__}; on PATH is another one, {found}.", mend)
    else:
        yield Finding("command", "ok", f"wholeturn {__version__}, {found}")


def check_helpers(place: Place) -> Iterator[Finding]:
    """Programs that tools use where they are."""
    for program, (check, loss, mend) in HELPERS.items():
        found = place.program(program)
        if found is None:
            yield Finding(check, "note", f"{program} is not on PATH: {loss}.", mend)
        else:
            yield Finding(check, "ok", found)


def check_terminal(place: Place) -> Iterator[Finding]:
    """Whether what the commands print can be shown."""
    name = place.encoding
    if name.lower().replace("-", "").startswith("utf8"):
        yield Finding("terminal", "ok", f"the terminal's text is {name}")
    else:
        text = f"The terminal's text is {name}: other characters are shown as `?`."
        yield Finding("terminal", "note", text, "Set LANG to a UTF-8 locale, such as C.UTF-8.")


def check_start(
    place: Place, command: Sequence[str] = SERVER, patience: float = START_PATIENCE
) -> Iterator[Finding]:
    """Start the server as an editor does, greet it, and end it. patience: seconds that it has to answer."""
    begun = time.monotonic()
    # A file and no pipe: whatever it writes there never holds it up.
    with tempfile.TemporaryFile() as words:
        try:
            server = subprocess.Popen(
                command,
                cwd=place.folder,
                env=dict(place.env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=words,
            )
        except OSError as error:
            yield _no_start(f"The server cannot be started: {error.strerror}.")
            return
        with server:
            try:
                line = _answer(server, begun + patience)
                seconds = time.monotonic() - begun
                if line == b"":
                    # It is about to end, and may still say why.
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        server.wait(1)
            finally:
                server.kill()
        said = _last_words(words)
    yield (
        _no_start(f"The server does not answer within {seconds:.1f} s{said}.")
        if line is None
        else _timed(line, seconds, said)
    )


def _last_words(words: IO[bytes]) -> str:
    """Its last line on stderr, as the end of a sentence; '' when it said nothing."""
    words.seek(max(0, words.seek(0, os.SEEK_END) - _WORDS))
    lines = words.read().decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    shown = "".join(char if char.isprintable() else "?" for char in last[:200])
    return f'; it said "{shown}"' if shown else ""


def _answer(server: subprocess.Popen[bytes], deadline: float) -> bytes | None:
    """The first line, b"" of a server that ended without one; None when there is none in time."""
    assert server.stdin is not None  # both piped above
    assert server.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        server.stdin.write(HELLO)
        server.stdin.flush()
    data, fd = b"", server.stdout.fileno()
    while b"\n" not in data:
        ready, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return None
        piece = os.read(fd, 65536)
        if not piece:
            return b""
        data += piece
    return data.partition(b"\n")[0]


def _timed(line: bytes, seconds: float, said: str) -> Finding:
    try:
        version = json.loads(line)["result"]["agentInfo"]["version"]
    except (ValueError, KeyError, TypeError):
        return _no_start(f"The server does not answer `initialize`{said}.")
    text = f"version {version} started and answered in {seconds:.2f} s"
    if seconds > SLOW_START:
        return Finding(
            "start", "note", text, "Run it again: a first start compiles, a busy disk makes it slow."
        )
    return Finding("start", "ok", text)


def _no_start(text: str) -> Finding:
    return Finding(
        "start", "bad", text, "Run `wholeturn` in a terminal and read what it says; install it again."
    )
