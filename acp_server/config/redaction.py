"""What is wrong with the patterns of `redact`. Pure."""

import re
from collections.abc import Iterator
from typing import cast

from acp_server.config.keys import Key, key_text, printable
from acp_server.config.layers import Layer

KEY: Key = ("redact",)


def pattern_faults(layer: Layer) -> Iterator[str]:
    """What keeps a pattern from being used. The layer must fit the schema."""
    for text in cast("list[str]", layer.tree.get(KEY[0], [])):
        complaint = _complaint(text)
        if complaint:
            yield layer.says(KEY, f'{key_text(KEY)}: "{printable(text)}" {complaint}')


def _complaint(text: str) -> str:
    try:
        empty = re.compile(text).search("")
    except (re.error, OverflowError, RecursionError) as error:
        return f"is no regular expression: {error}"
    return "also fits an empty text, so it would be found everywhere" if empty else ""
