"""The permission modes, and what each kind of action meets in them; what permission of a session begins with.

Pure; knows no rule's meaning and reads nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from runtime.permission.remembered_answers import Remembered
from runtime.permission.rules import Policy, Rule
from runtime.values.profiles import MODE, Offer, Value

if TYPE_CHECKING:  # the answer that opens a session names the modes, and needs nothing of the ports
    from collections.abc import Mapping

    from runtime.ports import ToolAction

ModeId = Literal["ask", "accept_edits", "plan", "yolo"]
Answer = Literal["allow", "ask", "deny"]


class Mode(NamedTuple):
    """A mode as a person chooses it."""

    mode_id: ModeId
    name: str
    description: str


MODES: tuple[Mode, ...] = (
    Mode("ask", "Ask", "Reads freely; asks before edits, commands and everything else"),
    Mode("accept_edits", "Accept edits", "Edits files of the project freely; asks before commands"),
    Mode("plan", "Plan", "Reads only; asks to leave this mode when there is a plan"),
    Mode("yolo", "Yolo", "Never asks; only your own deny and ask rules count"),
)
DEFAULT_MODE: ModeId = "ask"

ANSWERS: Mapping[ModeId, Mapping[ToolAction, Answer]] = {
    "ask": {
        "read": "allow",
        "write": "ask",
        "execute": "ask",
        "fetch": "ask",
        "plan": "allow",
        "other": "ask",
        "switch_mode": "deny",
    },
    "accept_edits": {
        "read": "allow",
        "write": "allow",
        "execute": "ask",
        "fetch": "ask",
        "plan": "allow",
        "other": "ask",
        "switch_mode": "deny",
    },
    "plan": {
        "read": "allow",
        "write": "deny",
        "execute": "deny",
        "fetch": "ask",
        "plan": "allow",
        "other": "ask",
        "switch_mode": "ask",
    },
    "yolo": {
        "read": "allow",
        "write": "allow",
        "execute": "allow",
        "fetch": "allow",
        "plan": "allow",
        "other": "allow",
        "switch_mode": "deny",
    },
}


def mode_offer(current: ModeId) -> Offer:
    """The modes as something that a session can be set to."""
    values = tuple(Value(mode.mode_id, mode.name, mode.description) for mode in MODES)
    return Offer(MODE, "Mode", "mode", "What may happen without asking you", current, values)


def find_mode(mode_id: str) -> ModeId | None:
    """The mode of that id, or None."""
    return next((mode.mode_id for mode in MODES if mode.mode_id == mode_id), None)


@dataclass(frozen=True, slots=True)
class Permission:
    """The mode and the rules of the settings. answers: the folder of "always" answers, None for nowhere."""

    mode: ModeId = DEFAULT_MODE
    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    answers: Path | None = None

    def policy(self, root: Path) -> Policy:
        """The rules of a project. root: its folder, links resolved."""
        return Policy(root, self.allow, self.ask, self.deny)

    def remembered(self, root: Path) -> Remembered | None:
        """What was answered once and for all in that project."""
        return None if self.answers is None else Remembered(self.answers, root)
