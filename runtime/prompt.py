"""A prompt as the runtime takes it. Knows no protocol."""

from typing import NamedTuple


class Prompt(NamedTuple):
    """What the user sent: the row's text for the model, and the content blocks as they came."""

    text: str
    blocks: tuple[dict[str, object], ...]
