"""What all commands print and how they are parsed: for any terminal, and for a reader who may have gone.

The parser's errors name the command they are about and what was probably meant. Knows no command.
"""

import argparse
import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

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


class ReaderGone(OutputLost):
    """Whoever read the output has had enough, as `head` does: nothing is wrong, and nobody is told."""


@contextmanager
def printing() -> Iterator[None]:
    """Print inside of it, nothing else; what is buffered goes out at the end. Raises OutputLost."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        discard_output()
        if isinstance(error, BrokenPipeError):
            raise ReaderGone("nobody reads the output any more") from None
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


def described(text: str) -> str:
    """A line of help as a sentence. What is written in capitals stays so."""
    return f"{text[:1].upper()}{text[1:]}."


class Parser(argparse.ArgumentParser):
    """Commands of it are parsers of the same kind. `parser` in what it gives is the one of the command."""

    def __init__(self, *given: object, **named: object) -> None:
        super().__init__(*given, **named)  # type: ignore[arg-type]
        self.set_defaults(parser=self)

    def read(self, arguments: Sequence[str]) -> argparse.Namespace:
        """As parse_args, but flags that nobody knows are refused by the command they were given to."""
        given, rest = self.parse_known_args(arguments)
        if rest:
            given.parser.error(f"unrecognized arguments: {' '.join(rest)}")
        return given

    def error(self, message: str) -> NoReturn:
        """Say it and end with status 2."""
        # Loaded here alone: only an error needs them.
        import re

        from acp_server.config.merge import nearest

        choice = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message, re.DOTALL)
        flag = re.search(r"unrecognized arguments:.*?(?:^|\s)(--[\w-]+)", message)
        found = None
        if choice:
            found = nearest(choice[1], re.findall(r"[\w-]+", choice[2]))
        elif flag:
            found = nearest(flag[1], re.findall(r"--[\w-]+", self.format_usage()))
        meant = f'; did you mean "{found}"?' if found else f"; `{self.prog} --help` tells more"
        super().error(message + meant)
