"""The base of all wire and file models, and how deep a received JSON value may nest.

Frozen, camelCase outside, snake_case inside. The encoders that write transcripts and messages stop near 250
levels, the decoders read a thousand; what is taken in must be writable again.
"""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class WireModel(BaseModel):
    """A model of something that crosses a border in camelCase. Unknown keys are ignored, as ACP asks."""

    model_config = ConfigDict(
        frozen=True,
        alias_generator=to_camel,
        populate_by_name=True,
        extra="ignore",
        defer_build=True,
    )


class FileModel(BaseModel):
    """A model of a file that people write, in snake_case. Unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


MAX_DEPTH = 100
"""Levels of objects and lists that a value may have, to leave room for what it is written into."""


def is_shallow(value: object, depth: int = MAX_DEPTH) -> bool:
    """Whether a decoded value has at most `depth` levels."""
    level = [value]
    for _ in range(depth + 1):
        level = [inner for item in level for inner in _inside(item)]
        if not level:
            return True
    return False


def _inside(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
