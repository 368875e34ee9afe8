"""What the commands print: to any terminal, and to a reader who may have gone. Knows no command."""

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from runtime.values.errors import WholeturnError

_CONTROLS = dict.fromkeys((*range(32), *range(127, 160)), "\N{REPLACEMENT CHARACTER}")
del _CONTROLS[ord("\n")], _CONTROLS[ord("\t")]


class OutputLost(WholeturnError):
    """Nobody reads the output any more, or it has no room."""


def accept_all_text() -> None:
    """Show `?` for what a terminal has no character for, and take U+FFFD for bad bytes on stdin."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


@contextmanager
def printing() -> Iterator[None]:
    """Print inside of it, nothing else; what is buffered goes out at the end. Raises OutputLost."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        discard_output()
        raise OutputLost(f"the output cannot be written: {error.strerror}") from None


def say(text: str) -> None:
    """A line on stdout, or some. Raises OutputLost."""
    with printing():
        print(harmless(text))


def harmless(text: str) -> str:
    """The text with a sign in the place of each control character: a terminal would obey those."""
    return text.translate(_CONTROLS)


def say_json(value: object) -> None:
    """A value as a line of JSON on stdout. Raises OutputLost."""
    say(json.dumps(value, ensure_ascii=False))


def discard_output() -> None:
    """Throw away what is still buffered: it would fail once more, noisily, when the interpreter ends."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
