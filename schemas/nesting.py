"""How deep a received JSON value nests: what is taken in must be writable again. Pure.

The encoders that write transcripts and messages stop near 250 levels, the decoders read a thousand.
"""

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
