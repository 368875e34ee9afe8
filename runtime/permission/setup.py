"""What permission in a session begins with, as one frozen value. Reads nothing."""

from dataclasses import dataclass
from pathlib import Path

from runtime.permission.modes import DEFAULT_MODE, ModeId
from runtime.permission.policy import Policy
from runtime.permission.remembered import Remembered
from runtime.permission.rules import Rule


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
