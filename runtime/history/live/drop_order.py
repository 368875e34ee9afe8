"""Which turns go first, and how many of them: the order of whole-turn trims. Knows no history and no request.

`recent` lets the oldest go first. `head-tail` keeps the turn that defines the task: the one in which the
current goal was set, as long as there is one behind the first turn, else the first. What came before a goal
goes first.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from runtime.history.rows.estimate import price_rows
from runtime.history.rows.token_counter import HEURISTIC, TokenCounter
from runtime.history.rows.trim import layout
from runtime.values.profiles import Retention
from runtime.values.rows import Row


def usable(boundary: int | None, turns: int) -> bool:
    """Whether a goal's turn parts the turns in two: it is there, and some came before it."""
    return boundary is not None and 0 < boundary < turns


def head_turn(turns: int, retention: Retention, boundary: int | None) -> int | None:
    """The turn that is kept as the head; None where none is, or where it is the newest."""
    if retention == "recent" or turns < 2:
        return None
    head = boundary if boundary is not None and usable(boundary, turns) else 0
    return head if head < turns - 1 else None


def drop_order(
    turns: int, retention: Retention, boundary: int | None = None, pinned: Collection[int] = ()
) -> Sequence[int]:
    """The turns that may go, in the order in which they do. Never the newest, the head or a pinned one.

    boundary: the turn of the current goal, counted from 0.
    """
    head = head_turn(turns, retention, boundary)
    if head is None and not pinned:
        return range(turns - 1)
    return [turn for turn in range(turns - 1) if turn != head and turn not in pinned]


def fewest(order: Sequence[int], weights: Sequence[int], enough: Callable[[int], bool]) -> tuple[int, ...]:
    """The shortest beginning of `order`, at least one turn, whose going is enough; all of it if nothing is.

    enough: takes the sum of the weights that are left.
    """
    left = sum(weights)
    gone: list[int] = []
    for turn in order:
        left -= weights[turn]
        gone.append(turn)
        if enough(left):
            break
    return tuple(gone)


@dataclass(frozen=True, slots=True)
class TrimPlan:
    """What a plan leaves of plain rows. dropped: [from, to) of the rows that went, in the rows given.

    boundary: where the goal's turn begins in `messages`, None where none does. superseded: requests from
    before the goal went.
    Untouched: `messages` is the very sequence that was given.
    """

    messages: Sequence[Row]
    boundary: int | None
    dropped: tuple[tuple[int, int], ...]
    dropped_turns: int
    kept_turns: int
    tokens_before: int
    tokens_after: int
    superseded: bool = False

    @property
    def trimmed(self) -> bool:
        """Whether anything went."""
        return bool(self.dropped)

    @property
    def dropped_messages(self) -> int:
        """How many rows went."""
        return sum(end - start for start, end in self.dropped)


def trim_plan(
    messages: Sequence[Row],
    boundary: int | None,
    budget: int,
    *,
    crumb_present: bool = False,
    counter: TokenCounter = HEURISTIC,
) -> TrimPlan:
    """Head-tail retention of plain rows. boundary: the row that opens the goal's turn, None without one.

    The leading system rows and the flagged breadcrumb always stay, and so does the newest turn. Rows before
    the first turn go with it. A budget of 0 is off. A boundary that opens no turn, or the first, is no
    boundary.
    """
    plan = layout(messages, crumb_present)
    prices = price_rows(messages, counter)
    before = sum(prices)
    turns = len(plan.starts)
    if budget == 0 or before <= budget or turns < 2:
        return TrimPlan(messages, boundary, (), 0, turns, before, before)
    edges = [plan.prefix, *plan.starts[1:], len(messages)]
    weights = [sum(prices[start:end]) for start, end in pairwise(edges)]
    goal = plan.starts.index(boundary) if boundary in plan.starts else None
    fixed = sum(prices[: plan.prefix])
    gone = fewest(drop_order(turns, "head-tail", goal), weights, lambda left: fixed + left <= budget)
    spans = tuple((edges[turn], edges[turn + 1]) for turn in gone)
    lost = {row for start, end in spans for row in range(start, end)}
    kept = [row for index, row in enumerate(messages) if index not in lost]
    parted = usable(goal, turns)
    return TrimPlan(
        kept,
        None if goal is None else plan.starts[goal] - sum(b - a for a, b in spans if b <= plan.starts[goal]),
        spans,
        len(gone),
        turns - len(gone),
        before,
        before - sum(weights[turn] for turn in gone),
        superseded=parted and any(turn < (goal or 0) for turn in gone),
    )
