"""A history without some of its turns, wherever they stand. Costs the turns, not their rows."""

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import replace

from runtime.history.collapsed import Collapsed
from runtime.history.goal import goal_index, pinned
from runtime.history.log import Log
from runtime.history.retention import drop_order, head_turn
from runtime.history.turn import Turn
from runtime.history.turns import History
from runtime.profiles import Profile


def without(history: History, gone: Sequence[int]) -> History:
    """Another history without these turns, marked with the breadcrumb. The newest is never among them."""
    if list(gone) == list(range(len(gone))):
        return history.without_oldest(len(gone))
    lost, other = frozenset(gone), copy(history)
    past: Log[Turn] = Log()
    for index, turn in enumerate(history.past):
        if index in lost:
            other.sums = other.sums.plus(turn, -1)
        else:
            past = past.pushed(turn)
    other.past, other.collapse = past, Collapsed(history.collapse.callable_tools)
    other.crumb_present = True
    gap = max(lost)
    before_gap = max(history.beside.held, gap)
    other.beside = replace(history.beside, held=before_gap - sum(index < before_gap for index in lost))
    return other


def may_go(history: History, profile: Profile) -> Sequence[int]:
    """The turns that a trim may take, in its order."""
    return drop_order(history.turn_count, profile.retention, goal_index(history), pinned(history))


def head_of(history: History, profile: Profile) -> int | None:
    """The turn that head-tail retention keeps as the head, unless it is pinned."""
    head = head_turn(history.turn_count, profile.retention, goal_index(history))
    return None if head in pinned(history) else head


def reduced_to(history: History, first_turn_id: str, held: Collection[str]) -> History:
    """The history as a recorded cut left it: the turns from one on, and those before it that are held."""
    gone: list[int] = []
    for index, turn in enumerate(history.turns):
        if turn.turn_id == first_turn_id:
            return without(history, gone) if gone else copy(history)
        if turn.turn_id not in held:
            gone.append(index)
    return copy(history)
