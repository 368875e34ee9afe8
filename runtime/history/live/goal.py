"""The goal that a session has now, what the model is told of it, and where its turn begins. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.history.live.history import History
from runtime.values.rows import Row

MARKER = "Goal changed: {goal}. What was asked before it is background now, not a task."
LONGEST_GOAL = 500
"""Characters of a goal that the marker repeats."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal. turn_id: of the turn in which it was set.

    position: of that turn's prompt among the history's messages when it was set, from 1; 0: not known. Only
    an older record has it alone. supersedes: there were requests before it.
    """

    text: str
    turn_id: str = ""
    position: int = 0
    supersedes: bool = False


def same_goal(old: Goal | None, text: str) -> bool:
    """Whether a text says the goal again, letter case and white space aside."""
    return old is not None and _folded(old.text) == _folded(text)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def marker(goal: Goal | None) -> str:
    """The line for the orientation prefix; '' while no earlier request has to be countered."""
    if goal is None or not goal.supersedes:
        return ""
    text = " ".join(goal.text.split())
    shown = text if len(text) <= LONGEST_GOAL else f"{text[: LONGEST_GOAL - 1].rstrip()}…"
    return MARKER.format(goal=shown.rstrip("."))


def goal_turn(history: History, goal: Goal | None) -> str:
    """The id of the kept turn in which the goal was set; '' when it is not kept."""
    if goal is None:
        return ""
    if goal.turn_id or not goal.position:
        return goal.turn_id
    row = 0
    for turn in history.turns:
        row += len(turn.rows)
        if goal.position <= row:
            return turn.turn_id
    return ""


def build_history_with_boundary(history: History) -> tuple[list[Row], int | None]:
    """All messages as they are kept, and the index at which the current goal's turn begins; None without one.

    A turn is any number of messages, so the index is read off while they are put together.
    """
    lead = [history.system.piece] if history.system.piece is not None else []
    lead += [history.beside.crumb] if history.crumb_present else []
    lead += [history.beside.notes] if history.beside.notes is not None else []
    messages: list[Row] = [row for piece in lead for row in piece.segment.rows]
    boundary = None
    for turn in history.turns:
        if turn.turn_id == history.beside.goal:
            boundary = len(messages)
        messages += turn.repaired.rows
    return messages, boundary


def goal_index(history: History) -> int | None:
    """Which turn, from 0, is the current goal's; None when none is, or it is gone."""
    return index_of(history, history.beside.goal) if history.beside.goal else None


def index_of(history: History, turn_id: str) -> int | None:
    """Which turn, from 0, has that id."""
    return next((index for index, turn in enumerate(history.turns) if turn.turn_id == turn_id), None)


def pinned(history: History) -> Sequence[int]:
    """Which turns, from 0, are pinned."""
    pins = history.beside.pins
    return [index for index, turn in enumerate(history.turns) if turn.turn_id in pins] if pins else []
