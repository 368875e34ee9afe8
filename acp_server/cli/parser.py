"""A parser whose errors name the command they are about and what was probably meant. Knows no command."""

import argparse
from collections.abc import Sequence
from typing import NoReturn


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

        from acp_server.config.nearest import nearest

        choice = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message, re.DOTALL)
        flag = re.search(r"unrecognized arguments:.*?(?:^|\s)(--[\w-]+)", message)
        found = None
        if choice:
            found = nearest(choice[1], re.findall(r"[\w-]+", choice[2]))
        elif flag:
            found = nearest(flag[1], re.findall(r"--[\w-]+", self.format_usage()))
        meant = f'; did you mean "{found}"?' if found else f"; `{self.prog} --help` tells more"
        super().error(message + meant)
