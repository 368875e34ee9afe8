"""What the user of a session may set, and has set: plain values. Knows no settings file and no wire."""

from typing import NamedTuple

MODEL, THOUGHT_LEVEL, PROFILE, MODE = "model", "thought_level", "profile", "mode"
"""The ids of what can be set. The mode is no part of a Choice: it holds at once, not with the next turn."""


class Choice(NamedTuple):
    """What was chosen; '' leaves it as it is configured. model: a route's id. profile: a name."""

    model: str = ""
    thought_level: str = ""
    profile: str = ""


AS_CONFIGURED = Choice()
"""Nothing was chosen."""


class Value(NamedTuple):
    """One thing that may be chosen, with what a person reads of it."""

    id: str
    name: str
    description: str = ""


class Offer(NamedTuple):
    """Something that can be set, its values (at least one), and the id of the one in force.

    category: ACP's word for what it is about.
    """

    id: str
    name: str
    category: str
    description: str
    current: str
    values: tuple[Value, ...]
