"""A history after one pass of a context trimmer over its running turn, and what that took from the view."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace

from runtime.history.rounds import LoopChange, LoopView, Round, changed_rows, numbers, tool_rounds
from runtime.history.shorten import completed_rounds
from runtime.history.turn import with_rows
from runtime.history.turns import History
from runtime.rows import Row


@dataclass(frozen=True, slots=True)
class Narrowed:
    """The history afterwards. Of what the last view still had: rows of rounds that went, results that got
    another text.
    """

    history: History
    dropped_rows: int
    overwritten: int


def narrowed(history: History, change: LoopChange) -> Narrowed:
    """Apply a pass to the running turn. Leaves `history` as it is. There must be a turn."""
    turn = history.current
    assert turn is not None
    before = history.marks.view or LoopView()
    rounds = tool_rounds(turn.repaired.rows)
    gone = frozenset(range(len(rounds))).difference(numbers(change.kept))
    fresh = gone - before.hidden
    texts = set(change.outputs).difference(before.outputs)
    other = copy(history)
    if change.persist:
        other.current = with_rows(turn, changed_rows(turn.rows, change))
        view = LoopView(folded=before.folded + len(gone))
    else:
        view = LoopView(gone, change.outputs, before.folded)
    other.marks = replace(history.marks, view=view if view != LoopView() else None)
    if history.marks.rounds_cut:
        # A text that a pass has just written is to be read: what must be cut is decided anew with it.
        other.marks = replace(other.marks, rounds_cut=0 if texts else _still_cut(history, other))
    return Narrowed(other, _rows_of(rounds, fresh), len(texts))


def _rows_of(rounds: Sequence[Round], chosen: frozenset[int]) -> int:
    return sum(len(rounds[number]) for number in chosen)


def _still_cut(before: History, after: History) -> int:
    """How many of the oldest rounds that are shown now were shortened before."""
    old, new = _shown(before), _shown(after)
    first = completed_rounds(old)[: before.marks.rounds_cut]
    cut = {old[at].tool_call_id or id(old[at]) for one in first for at in one}
    places = enumerate(completed_rounds(new), 1)
    return max(
        (n for n, one in places if any((new[at].tool_call_id or id(new[at])) in cut for at in one)), default=0
    )


def _shown(history: History) -> tuple[Row, ...]:
    return () if history.shown is None else history.shown.repaired.rows
