"""A prompt as the runtime takes it, a plan as it is set, and commands that stand for a prompt. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, get_args

from runtime.values.events import PlanEntry, PlanPriority, PlanStatus
from runtime.values.texts import CONTINUING

GOAL_COMMAND = "/goal"


class Prompt(NamedTuple):
    """What the user sent: the row's text for the model, and the content blocks as they came.

    goal: what the session is about from this prompt on, '' when it goes on as before.
    """

    text: str
    blocks: tuple[dict[str, object], ...]
    goal: str = ""


def with_goal(prompt: Prompt) -> Prompt:
    """`/goal TEXT` as the prompt TEXT that declares a goal; any other prompt as it is."""
    command, *rest = prompt.text.split(maxsplit=1)[:2] or [""]
    if command != GOAL_COMMAND or not rest:
        return prompt
    return prompt._replace(text=rest[0].strip(), goal=rest[0].strip())


PLAN_TOOL = "update_plan"
STATUSES: tuple[PlanStatus, ...] = get_args(PlanStatus)
PRIORITIES: tuple[PlanPriority, ...] = get_args(PlanPriority)


def plan_entries(arguments: Mapping[str, object]) -> tuple[PlanEntry, ...]:
    """The steps that can be read; what is missing in one has its default."""
    found = arguments.get("entries")
    rows = found if isinstance(found, list) else []
    return tuple(
        _entry(row) for row in rows if isinstance(row, Mapping) and isinstance(row.get("content"), str)
    )


def _entry(row: Mapping[str, object]) -> PlanEntry:
    status: PlanStatus = next((known for known in STATUSES if known == row.get("status")), "pending")
    priority: PlanPriority = next((known for known in PRIORITIES if known == row.get("priority")), "medium")
    return PlanEntry(str(row["content"]), priority, status)


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
