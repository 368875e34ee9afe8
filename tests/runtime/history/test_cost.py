"""What a turn costs, counted in prices and new segments, never in time."""

from dataclasses import dataclass, field

import pytest

from runtime.history.live.history import History
from runtime.history.request.compose import compose
from runtime.history.rows.pairs import CallIds
from runtime.history.rows.token_counter import HEURISTIC
from runtime.values.profiles import Profile, Route
from tests.runtime.history.helpers import SHELL, add_turn, called, result, said, user

ROUTE = Route("p", "m", 1_000_000)
PROFILE = Profile(max_history_messages=50, max_context_tokens=100_000)


@dataclass(eq=False)
class Counting:
    """The usual counter, with the number of texts it was asked for."""

    name: str = "counting"
    calls: list[int] = field(default_factory=lambda: [0])

    def count(self, *texts: str) -> int:
        self.calls[0] += 1
        return HEURISTIC.count(*texts)


def session(turns: int, profile: Profile = PROFILE) -> tuple[History, Counting]:
    counter = Counting()
    history = History(["sys"], counter=counter)
    for index in range(turns):
        history.open_turn(f"t{index}", user(f"question {index}"))
        history.append([called("c"), result("c", "out"), said("done")])
        history = compose(history, profile, ROUTE, [SHELL]).history
        history.close_turn()
    return history, counter


def one_turn(history: History, counter: Counting) -> tuple[int, int, History]:
    """Prices asked for and segments made by one whole turn of two calls."""
    known = {id(segment) for segment in compose(history, PROFILE, ROUTE, [SHELL]).segments}
    before = counter.calls[0]
    history.open_turn("new", user("one more"))
    first = compose(history, PROFILE, ROUTE, [SHELL])
    history = first.history
    history.append([called("n"), result("n", "out")])
    second = compose(history, PROFILE, ROUTE, [SHELL])
    history = second.history
    history.append([said("done")])
    history.close_turn()
    sent = {id(segment) for composed in (first, second) for segment in composed.segments}
    return counter.calls[0] - before, len(sent - known), history


def test_a_call_id_used_in_every_turn_costs_the_same_in_the_last():
    asked = []

    def taken(name: str) -> bool:
        asked.append(name)
        return name == "c" or int(name[2:]) < 90_000

    assert CallIds(taken, lambda _: 89_999).give("c") == "c_90000"
    assert len(asked) == 3


def test_a_turn_costs_the_same_in_a_short_and_in_a_long_session():
    assert one_turn(*session(100))[:2] == one_turn(*session(5_000))[:2]


def test_a_row_is_priced_once_and_renamed_rows_twice():
    counter = Counting()
    history = History(["sys"], counter=counter)
    start = counter.calls[0]
    for index in range(20):
        add_turn(history, f"t{index}", [user("q"), called(f"c{index}"), result(f"c{index}"), said("a")])
    wide = Profile(keep_tool_context_turns=99)
    compose(history, wide, ROUTE)
    compose(history, wide, ROUTE)
    assert counter.calls[0] - start == 80


def test_a_new_row_makes_one_segment_and_touches_no_other():
    history, _ = session(200, Profile(max_history_messages=300))
    wide = Profile(max_history_messages=300)
    history.open_turn("new", user("q"))
    before = compose(history, wide, ROUTE, [SHELL])
    history = before.history
    history.append([called("n"), result("n")])
    after = compose(history, wide, ROUTE, [SHELL])
    assert len(after.segments) == len(before.segments) + 1
    assert all(one is other for one, other in zip(before.segments, after.segments, strict=False))


def test_a_new_prompt_changes_at_most_one_older_turn():
    history, _ = session(30, Profile(max_history_messages=300))
    wide = Profile(max_history_messages=300)
    before = compose(history, wide, ROUTE, [SHELL]).history
    old = {id(segment) for segment in compose(before, wide, ROUTE, [SHELL]).segments}
    before.open_turn("new", user("q"))
    after = compose(before, wide, ROUTE, [SHELL])
    fresh = [segment for segment in after.segments if id(segment) not in old]
    assert [segment.rows[0].content for segment in fresh] == ["question 27", "q"]


@pytest.mark.parametrize("turns", [200, 2_000])
def test_a_trim_makes_no_segment_and_prices_nothing(turns):
    history, counter = session(turns, Profile(max_history_messages=10_000, max_context_tokens=900_000))
    wide = Profile(max_history_messages=10_000, max_context_tokens=900_000)
    before = compose(history, wide, ROUTE, [SHELL])
    calls = counter.calls[0]
    tight = Profile(max_history_messages=10_000, max_context_tokens=before.estimated_tokens - 1)
    after = compose(before.history, tight, ROUTE, [SHELL])
    # The breadcrumb may make a second turn go; nothing else is touched.
    assert 1 <= after.trims[0].dropped_turns <= 2
    assert counter.calls[0] == calls
    known = {id(segment) for segment in before.segments} | {id(before.history.beside.crumb.segment)}
    assert all(id(segment) in known for segment in after.segments)
