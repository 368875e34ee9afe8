"""How turns are counted: which of them the model takes part in, and what is cut off at a point in time.

A turn's number is the place of its prompt among all prompts of the session, from 1: commands that were
answered without the model count too, since the person sees them as well. Pure.
"""

from dataclasses import dataclass, field

from runtime.history.boundaries import TOOL_RESULTS_PREFIX
from runtime.record import TurnRecord
from runtime.restore import turn_rows
from schemas.transcript import GoalStep


@dataclass(slots=True)
class Counting:
    """Fed with a session's records in order. number: of the newest prompt.

    kept: the ids of the turns the model has had so far, oldest first; dropped: how many of those are gone.
    cleared: the turn in which the user had all of them go, '' for none. cut: the first turn that is kept and
    those held before it, as last recorded. goal: the one in force. notes: about dropped
    turns.
    """

    number: int = 0
    kept: list[str] = field(default_factory=list)
    dropped: int = 0
    cleared: str = ""
    cut: tuple[str, tuple[str, ...]] = ("", ())
    goal: GoalStep | None = None
    notes: str = ""

    def add(self, turn: TurnRecord, *, with_trims_after: bool = True) -> None:
        """Take in the next record. with_trims_after=False: up to its end, not what was trimmed behind it."""
        if turn.prompt is not None:
            self.number += 1
            if opens_turn(turn, first=self.dropped >= len(self.kept)):
                self.kept.append(turn.turn_id)
        trims = [*turn.trims(), *(turn.trims_after if with_trims_after else ())]
        self.dropped += sum(trim.dropped_turns for trim in trims)
        if any(not trim.kept_turns for trim in trims):
            self.cleared = turn.turn_id
        self.cut = next(
            ((one.first_turn_id, one.held) for one in reversed(trims) if one.first_turn_id), self.cut
        )
        self.notes = next((one.summary for one in reversed(trims) if one.summary), self.notes)
        self.goal = turn.aside.goals[-1] if turn.aside.goals else self.goal
        if turn.expand is not None:
            self.dropped = turn.expand.dropped_turns
            self.cut = turn.expand.first_turn_id, turn.expand.held

    def first_turn_id(self) -> str:
        """The oldest turn that the model still gets; '' when it gets all."""
        if not self.dropped or not self.kept:
            return ""
        if self.cut[0]:
            return self.cut[0]
        if self.dropped >= len(self.kept) and self.cleared:
            return self.cleared
        return self.kept[min(self.dropped, len(self.kept) - 1)]


def opens_turn(turn: TurnRecord, *, first: bool) -> bool:
    """Whether the history has a turn for this prompt: it is for the model and joins no turn before it."""
    if turn.prompt is None or not turn_rows(turn):
        return False
    return first or not turn.prompt.text.startswith(TOOL_RESULTS_PREFIX)
