"""Commands that stand for a prompt: texts with places for arguments. Pure; knows no file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from runtime.marks import CONTINUING

_PLACE = re.compile(r"\$(ARGUMENTS|[1-9])")


@dataclass(frozen=True, slots=True)
class CustomCommand:
    """A command without its slash. template: `$ARGUMENTS` and `$1` to `$9` are filled. hint: '' for none."""

    name: str
    description: str
    hint: str
    template: str

    def prompt(self, arguments: str) -> str:
        """The text that the command stands for. Without a place for them arguments stand behind it."""
        words = arguments.split()
        if not _PLACE.search(self.template):
            return f"{self.template}\n\n{arguments}" if words else self.template

        # In one pass: what stands in an argument is no place.
        def fill(place: re.Match[str]) -> str:
            if place[1] == "ARGUMENTS":
                return arguments
            number = int(place[1])
            return words[number - 1] if number <= len(words) else ""

        return _PLACE.sub(fill, self.template)


def meant(text: str, commands: Mapping[str, CustomCommand]) -> str:
    """The prompt that a text stands for: itself, unless it begins with a command that stands for another."""
    fixed = CONTINUING.get(" ".join(text.split()))
    if fixed is not None:
        return fixed
    word, arguments = [*text.split(maxsplit=1), "", ""][:2]
    command = commands.get(word[1:]) if word.startswith("/") else None
    return text if command is None else command.prompt(arguments.strip())
