"""Head-tail retention and goals: each rule by hand-made conversations, then properties for any."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.history.live.drop_order import drop_order, trim_plan
from runtime.history.live.goal import (
    LONGEST_GOAL,
    Goal,
    build_history_with_boundary,
    goal_turn,
    marker,
    same_goal,
)
from runtime.history.live.history import History, restore_history
from runtime.history.live.rendering import Face
from runtime.history.live.without_parts import may_go, without
from runtime.history.request.compose import Composed, compose
from runtime.history.request.meter import weigh
from runtime.history.rows.estimate import estimate_history_tokens
from runtime.history.rows.pairs import pairs_ok
from runtime.history.rows.trim import layout
from runtime.values.profiles import Profile, Route
from runtime.values.rows import Row, ToolCall
from tests.runtime.history.strategies import flat_rows, histories

SYSTEM = Row("system", "s" * 36)
"""13 tokens."""


def turn(name: str, rounds: int = 0, size: int = 80) -> list[Row]:
    """A turn; 2 * (size / 4 + 4) tokens without rounds."""
    rows = [Row("user", name.ljust(size, "u"))]
    for number in range(rounds):
        call = ToolCall(f"{name}{number}", "shell", "{}")
        rows += [Row("assistant", "", (call,)), Row("tool", "r" * size, tool_call_id=call.id)]
    return [*rows, Row("assistant", "a" * size)]


def talk(*names: str, rounds: int = 0) -> list[Row]:
    return [SYSTEM, *(row for name in names for row in turn(name, rounds))]


def kept(rows) -> str:
    """The first letters of the turns that are there."""
    return "".join(row.content[0] for row in rows if row.role == "user")


TURN = 48
ALL = 13 + 6 * TURN


def planned(budget: int, boundary: int | None = None, names: str = "abcdef"):
    """boundary: of the turn, not of the row."""
    rows = talk(*names)
    return rows, trim_plan(rows, None if boundary is None else 1 + 2 * boundary, budget)


# ---------------------------------------------------------------- the five rules


@pytest.mark.parametrize("boundary", [None, 3])
def test_rule_1_what_fits_is_left_alone(boundary):
    rows, plan = planned(ALL, boundary)
    assert plan.messages is rows
    assert (plan.trimmed, plan.tokens_before, plan.tokens_after) == (False, ALL, ALL)
    assert planned(ALL - 1, boundary)[1].trimmed


@pytest.mark.parametrize(
    ("budget", "left", "superseded"),
    [
        (ALL, "abcdef", False),
        (ALL - 1, "bcdef", True),
        (ALL - TURN, "bcdef", True),
        (ALL - TURN - 1, "cdef", True),
    ],
)
def test_rule_2_turns_before_the_goal_go_oldest_first(budget, left, superseded):
    """As soon as it fits the plan ends: newer turns from before the switch stay."""
    _, plan = planned(budget, 3)
    assert kept(plan.messages) == left
    assert plan.superseded is superseded
    assert plan.messages[plan.boundary].content.startswith("d")


@pytest.mark.parametrize(
    ("budget", "left"),
    [
        (ALL - 3 * TURN, "def"),
        (ALL - 3 * TURN - 1, "df"),
        (ALL - 4 * TURN, "df"),
        (1, "df"),
    ],
)
def test_rule_3_then_the_goals_own_turns_keep_head_and_tail(budget, left):
    _, plan = planned(budget, 3)
    assert kept(plan.messages) == left
    assert plan.messages[plan.boundary].content.startswith("d")


def test_rule_3_the_tail_is_as_long_as_it_can_be():
    _, plan = planned(13 + 4 * TURN, 1, "abcdefgh")
    assert kept(plan.messages) == "bfgh"


def test_rule_3_the_plan_made_in_the_goals_turn_stays_with_it():
    rows = talk("a", "b", "c", "d", rounds=1)
    plan = trim_plan(rows, 5, 1)
    assert [row.role for row in plan.messages[1:5]] == ["user", "assistant", "tool", "assistant"]
    assert kept(plan.messages) == "bd"


def test_rule_4_the_orientation_prefix_is_never_trimmed():
    crumb = Row("user", "[earlier turns omitted to fit the context window]")
    rows = [SYSTEM, Row("system", "more"), crumb, *turn("a"), *turn("b"), *turn("c")]
    plan = trim_plan(rows, 5, 1, crumb_present=True)
    assert plan.messages[:3] == rows[:3]
    assert kept(plan.messages[3:]) == "bc"


@pytest.mark.parametrize("boundary", [None, 0, 1, 2, 99, -1])
def test_rule_5_without_a_usable_boundary_it_is_head_and_tail(boundary):
    """No goal, a goal on the first turn, rows that open no turn, rows that are not there."""
    rows = talk(*"abcdef")
    plan = trim_plan(rows, boundary, ALL - TURN)
    assert kept(plan.messages) == "acdef"
    assert trim_plan(rows, boundary, 1).messages == [*rows[:3], *rows[-2:]]
    assert not plan.superseded


def test_the_newest_turn_stays_whatever_it_costs():
    assert kept(planned(1, 5)[1].messages) == "f"
    assert kept(trim_plan(talk("a"), None, 1).messages) == "a"
    assert kept(trim_plan(talk("a", "b"), None, 1).messages) == "ab"


def test_a_budget_of_nothing_is_off():
    rows = talk(*"abc")
    assert trim_plan(rows, None, 0).messages is rows


def test_what_went_is_told():
    rows, plan = planned(1, 3)
    assert plan.dropped == ((1, 3), (3, 5), (5, 7), (9, 11))
    assert (plan.dropped_messages, plan.dropped_turns, plan.kept_turns) == (8, 4, 2)
    assert plan.tokens_after == estimate_history_tokens(plan.messages)
    lost = {at for start, end in plan.dropped for at in range(start, end)}
    assert [row for at, row in enumerate(rows) if at not in lost] == plan.messages


@pytest.mark.parametrize(
    ("retention", "boundary", "pins", "order"),
    [
        ("recent", None, (), [0, 1, 2, 3]),
        ("recent", 2, (), [0, 1, 2, 3]),
        ("recent", None, (1,), [0, 2, 3]),
        ("head-tail", None, (), [1, 2, 3]),
        ("head-tail", 2, (), [0, 1, 3]),
        ("head-tail", 4, (), [0, 1, 2, 3]),
        ("head-tail", 2, (0, 3), [1]),
    ],
)
def test_the_order_in_which_turns_go(retention, boundary, pins, order):
    assert list(drop_order(5, retention, boundary, pins)) == order


# ---------------------------------------------------------------- properties


@st.composite
def conversations(draw):
    """Rows of an embedder with pairs whole, one of the rows that open a turn as boundary, and a budget."""
    rows = draw(flat_rows())
    boundary = draw(st.one_of(st.none(), st.integers(-1, len(rows))))
    total = estimate_history_tokens(rows)
    return rows, boundary, draw(st.integers(0, total + 5))


@given(conversations())
def test_any_plan_keeps_the_rules(conversation):
    rows, boundary, budget = conversation
    plan = trim_plan(rows, boundary, budget)
    if plan.tokens_before <= budget:
        assert plan.messages is rows
    assert plan.messages[: prefix(rows)] == rows[: prefix(rows)]
    assert sum(end - start for start, end in plan.dropped) == len(rows) - len(plan.messages)
    if plan.trimmed:
        starts = opening(rows)
        assert rows[starts[-1] :] == list(plan.messages)[-len(rows[starts[-1] :]) :]
        if boundary not in starts[1:]:
            assert plan == replace(trim_plan(rows, None, budget), boundary=plan.boundary)
        else:
            lost_before = [span for span in plan.dropped if span[1] <= boundary]
            lost_behind = [span for span in plan.dropped if span[0] >= boundary]
            # No message from behind the switch goes while one from before it stays.
            if lost_behind:
                assert sum(end - start for start, end in lost_before) == boundary - prefix(rows)
            assert plan.boundary is not None
            assert plan.messages[plan.boundary] == rows[boundary]


@given(histories())
def test_pairs_stay_whole(history):
    messages, _ = build_history_with_boundary(history)
    for budget in (1, 100, 400):
        assert pairs_ok(trim_plan(messages, None, budget).messages)


def prefix(rows) -> int:
    return next((at for at, row in enumerate(rows) if row.role != "system"), len(rows))


def opening(rows) -> list[int]:
    opens = [
        at
        for at, row in enumerate(rows)
        if row.role == "user" and not row.content.startswith("[Tool results]") and at >= prefix(rows)
    ]
    return opens


@given(histories(), st.integers(0, 9), st.integers(1, 2000))
def test_a_live_history_keeps_what_the_plan_keeps(history, goal, budget):
    """Nothing collapsed, the window not known: compose and the plan of the plain rows agree on the turns."""
    turns = history.turns
    history.beside = replace(history.beside, goal=turns[goal].turn_id if goal < len(turns) else "gone")
    history.crumb_present = True
    profile = Profile(retention="head-tail", max_context_tokens=budget, max_history_messages=1000)
    made = compose(history, profile, Route("p", "m"), collapse=False)
    messages, boundary = build_history_with_boundary(history)
    # For plain rows, what the loop put in as the user opens a turn too.
    if len(layout(messages, crumb_present=True).starts) != history.turn_count:
        return
    plan = trim_plan(messages, boundary, made.target, crumb_present=True)
    assert [row for turn in made.history.turns for row in turn.repaired.rows] == list(plan.messages)[
        len(plan.messages) - sum(len(turn.repaired.rows) for turn in made.history.turns) :
    ]


@given(histories(), st.data())
def test_turns_may_leave_from_anywhere(history, data):
    count = history.turn_count
    gone = (
        sorted(data.draw(st.sets(st.integers(0, max(count - 2, 0)), max_size=count - 1))) if count > 1 else []
    )
    if not gone:
        return
    left = without(history, gone)
    names = [turn.turn_id for at, turn in enumerate(history.turns) if at not in gone]
    assert [turn.turn_id for turn in left.turns] == names
    assert left.sums.rows == sum(len(turn.rows) for turn in left.past)
    assert left.sums.tokens == sum(turn.whole().tokens for turn in left.past)
    assert left.crumb_present
    assert left.beside.held == sum(at not in gone for at in range(max(gone)))
    profile = Profile(max_context_tokens=10**9, max_history_messages=1000)
    composed = compose(left, profile, Route("p", "m"))
    assert composed.estimated_tokens == estimate_rows(composed)


def estimate_rows(composed: Composed) -> int:
    load_faces = [face for part in faces(composed.history, composed) for face in part]
    lead = composed.history.system.piece
    return (
        sum(face.tokens for face in load_faces)
        + (lead.tokens if lead else 0)
        + (composed.history.beside.crumb.tokens)
    )


def faces(history: History, composed: Composed) -> tuple[list[Face], list[Face]]:
    return weigh(history, composed.shape, 2).faces()


# ---------------------------------------------------------------- in a live history


def live(names: str = "abcdef", goal: str = "", **beside: Any) -> History:
    history = restore_history([(name, turn(name, rounds=1)) for name in names], system=["s" * 36])
    history.beside = replace(history.beside, goal=goal, **beside)
    return history


def composed(history: History, **settings: Any) -> Composed:
    profile = Profile(**{"retention": "head-tail", "max_history_messages": 1000, **settings})
    return compose(history, profile, Route("p", "m"))


def names(made) -> str:
    return "".join(turn.turn_id for turn in made.history.turns)


@pytest.mark.parametrize(
    ("goal", "limit", "left"),
    [("", 3, "aef"), ("d", 4, "cdef"), ("d", 3, "def"), ("d", 2, "df"), ("a", 3, "aef"), ("d", 1, "df")],
)
def test_the_count_limit_takes_turns_in_the_same_order(goal, limit, left):
    assert names(composed(live(goal=goal), max_history_messages=limit)) == left


def test_the_notice_names_the_strategy():
    (trim,) = composed(live(goal="d"), max_history_messages=3).trims
    assert (trim.strategy, trim.dropped_turns, trim.dropped_messages) == ("head-tail", 3, 12)


def test_the_head_before_a_gap_is_sent_collapsed():
    made = composed(live(), max_history_messages=3)
    assert made.history.beside.held == 1
    rows = made.rows()
    assert [row.role for row in rows[:4]] == ["system", "user", "user", "assistant"]
    assert kept(rows)[1:] == "aef"
    again = composed(made.history, max_history_messages=3)
    assert again.rows() == rows
    assert not again.trims


def test_the_head_goes_where_the_window_has_no_room_for_it():
    history = restore_history([(name, turn(name, size=2000)) for name in "abc"])
    profile = Profile(retention="head-tail", max_context_tokens=900)
    assert names(compose(history, profile, Route("p", "m", 4000))) == "ac"
    assert names(compose(history, profile, Route("p", "m", 1500))) == "c"


def test_a_pinned_turn_stays_under_any_retention():
    for retention in ("recent", "head-tail"):
        made = composed(live(pins=frozenset("c")), retention=retention, max_history_messages=2)
        assert "c" in names(made)
        assert names(made)[-1] == "f"
    assert names(composed(live(pins=frozenset("c")), retention="recent", max_history_messages=3)) == "cef"


def test_a_later_trim_lets_go_of_a_head_that_a_goal_made_stale():
    first = composed(live("abcdef"), max_history_messages=4).history
    assert names_of(first) == "adef"
    first.beside = replace(first.beside, goal="f")
    second = composed(first, max_history_messages=3)
    assert names(second) == "def"
    assert second.history.beside.held == 0


def names_of(history: History) -> str:
    return "".join(turn.turn_id for turn in history.turns)


def test_may_go_names_places_of_the_history_as_it_is():
    assert list(may_go(live(goal="d"), Profile(retention="head-tail"))) == [0, 1, 2, 4]


# ---------------------------------------------------------------- goals


def test_the_boundary_is_read_off_while_the_messages_are_put_together():
    messages, boundary = build_history_with_boundary(live(goal="c"))
    assert boundary is not None
    assert messages[boundary].content.startswith("c")
    assert messages[boundary - 1].role == "assistant"
    assert build_history_with_boundary(live(goal="gone"))[1] is None
    assert build_history_with_boundary(live())[1] is None


@pytest.mark.parametrize(
    ("text", "same"), [("Fix it", True), ("  fix \n IT ", True), ("fix that", False), ("", False)]
)
def test_the_same_goal_again(text, same):
    assert same_goal(Goal("fix it", "t1"), text) is same
    assert not same_goal(None, text)


def test_the_marker_is_one_line_and_only_there_when_it_counters_something():
    assert marker(None) == marker(Goal("g", "t1")) == ""
    line = marker(Goal("write\nthe docs.", "t2", supersedes=True))
    assert line.startswith("Goal changed: write the docs. ")
    assert "\n" not in line
    assert len(marker(Goal("x" * 5000, "t2", supersedes=True))) < LONGEST_GOAL + 100


@pytest.mark.parametrize(
    ("position", "turn_id"), [(1, "a"), (4, "a"), (5, "b"), (24, "f"), (25, ""), (0, "")]
)
def test_a_position_of_an_older_record_finds_its_turn(position, turn_id):
    assert goal_turn(live(), Goal("g", "", position)) == turn_id


def test_a_turns_id_counts_more_than_a_position():
    assert goal_turn(live(), Goal("g", "c", 1)) == "c"
