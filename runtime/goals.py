"""The session's current goal, as its history and its stored state have it; declaring another. Knows no
tool.
"""

from dataclasses import replace

from runtime.history.goal import Goal, goal_turn, marker, same_goal
from runtime.history.turns import History
from schemas.session_state import GoalRecord, SessionState
from schemas.transcript import GoalStep


def goal_of(state: SessionState) -> Goal | None:
    """The goal in force."""
    found = state.goal
    return None if found is None else Goal(found.text, found.turn_id, found.position, found.supersedes)


def goal_record(step: GoalStep | None) -> GoalRecord | None:
    """A recorded goal as the state has it."""
    return (
        None if step is None else GoalRecord(text=step.text, turn_id=step.turn_id, supersedes=step.supersedes)
    )


def goal_rows(state: SessionState) -> tuple[str, ...]:
    """What the orientation prefix says of it: one line, or nothing."""
    line = marker(goal_of(state))
    return (line,) if line else ()


def keep_what_counts(history: History, state: SessionState) -> None:
    """Tell the history which of its turns retention is to treat apart: the goal's, the pinned ones."""
    turn_id = goal_turn(history, goal_of(state))
    history.beside = replace(history.beside, goal=turn_id, pins=frozenset(state.pins))


def declared(history: History, state: SessionState, text: str, turn_id: str) -> SessionState | None:
    """The state with another goal; None when it is the goal already. turn_id: of the turn that declares it.

    The turn may still be on its way into the history.
    """
    if same_goal(goal_of(state), text):
        return None
    running = history.current is not None and history.current.turn_id == turn_id
    before = history.turn_count - running
    goal = GoalRecord(
        text=text.strip(),
        turn_id=turn_id,
        position=(history.sums.rows if running else history.row_count) + 1,
        supersedes=bool(before or state.dropped_turns),
    )
    return state.model_copy(update={"goal": goal})
