"""A prompt as the runtime takes it. Knows no protocol."""

from typing import NamedTuple

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
