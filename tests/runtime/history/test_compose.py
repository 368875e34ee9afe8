"""One provider call, step by step: limits, slack, notes, warnings, capacity, output limit."""

from dataclasses import replace

import pytest

from runtime.history.live.history import History
from runtime.history.request.compose import compose
from runtime.history.rows.notice import BREADCRUMB_TEXT, Reason
from runtime.values.errors import ContextWindowExceeded
from runtime.values.model import Segment
from runtime.values.profiles import PRESETS, Profile, Route
from runtime.values.rows import Image, Row, ToolSpec
from tests.runtime.history.helpers import SHELL, add_turn, called, plain_history, result, said, user

WIDE = Route("p", "m", 1_000_000)


def test_under_both_limits_nothing_changes():
    history = plain_history(3)
    composed = compose(history, Profile(), WIDE, [SHELL])
    assert (composed.trims, composed.warnings) == ((), ())
    assert composed.rows()[1:] == [row for turn in history.turns for row in turn.rows]


def test_both_limits_give_one_notice_with_the_sums():
    history = plain_history(10)
    composed = compose(history, Profile(max_history_messages=6, max_context_tokens=250), WIDE)
    (trim,) = composed.trims
    assert trim.reason == Reason.TOKEN_BUDGET
    assert (trim.dropped_turns, trim.kept_turns) == (7, 3)
    assert trim.dropped_messages == 14
    assert trim.tokens is not None
    assert (trim.tokens.budget, trim.tokens.after) == (250, composed.estimated_tokens)
    assert composed.rows()[1].content == BREADCRUMB_TEXT


def test_a_count_trim_has_no_token_figures():
    (trim,) = compose(plain_history(4), Profile(max_history_messages=0), WIDE).trims
    assert (trim.reason, trim.tokens) == (Reason.TURN_LIMIT, None)
    assert (trim.dropped_turns, trim.dropped_messages, trim.kept_turns) == (3, 6, 1)


def test_the_older_unit_counts_entries_and_drops_whole_turns():
    history = plain_history(2)
    add_turn(history, "tools", [user("q"), called("a", "b"), result("a"), result("b"), said("done")])
    profile = Profile(max_history_messages=6, history_unit="messages")
    composed = compose(history, profile, WIDE, [SHELL])
    assert composed.history.turn_count == 2
    assert composed.trims[0].dropped_turns == 1


def test_slack_starts_no_earlier_and_trims_more():
    history = plain_history(10)
    size = compose(history, Profile(), WIDE).estimated_tokens
    at = Profile(max_context_tokens=size, trim_slack_ratio=0.5)
    assert compose(history, at, WIDE).trims == ()
    below = Profile(max_context_tokens=size - 1, trim_slack_ratio=0.5)
    composed = compose(history, below, WIDE)
    assert composed.estimated_tokens <= size // 2
    assert compose(history, Profile(max_context_tokens=size - 1), WIDE).history.turn_count == 9


def test_slack_holds_for_the_count_limit_too():
    profile = Profile(max_history_messages=6, trim_slack_ratio=0.5)
    assert compose(plain_history(6), profile, WIDE).trims == ()
    assert compose(plain_history(7), profile, WIDE).history.turn_count == 3


def test_a_pair_that_a_bug_broke_is_repaired_before_the_request():
    history = History(["sys"])
    add_turn(history, "t1", [user("q"), called("c"), result("c"), said("a")])
    history.shared.first_use.clear()
    history.open_turn("t2", user("q"))
    history.shared.first_use.clear()
    history.append([called("c"), result("c")])
    twice = compose(history, Profile(), WIDE, [SHELL])
    assert twice.healed
    assert [row.tool_call_id for row in twice.rows() if row.role == "tool"] == ["c", "c_2"]
    turn = history.past[0]
    torn = replace(turn.whole(), segments=(Segment((user("q"), called("z"))),), whole_pairs=False)
    assert turn._kept.whole is not None
    turn._kept.whole = replace(turn._kept.whole, face=torn)
    mended = compose(history, Profile(), WIDE, [SHELL])
    assert mended.healed
    assert [row.content for row in mended.rows()][:3] == ["sys", "q", "q"]


def test_nothing_is_dropped_when_the_breadcrumb_would_cost_more():
    history = History()
    add_turn(history, "t1", [user("hi"), said("hello")])
    history.open_turn("t2", user("x " * 400))
    composed = compose(history, Profile(max_context_tokens=150), WIDE)
    assert composed.trims == ()
    assert composed.history.turn_count == 2


def test_budget_zero_trims_only_for_the_window_and_says_so():
    history = plain_history(40, 400)
    off = Profile(max_context_tokens=0)
    assert compose(history, off, Route("p", "m", 50_000)).trims == ()
    (trim,) = compose(history, off, Route("p", "m", 6_000)).trims
    assert "max_context_tokens = 0" in trim.note


def test_calibration_multiplies_and_never_shrinks():
    history = plain_history(10)
    plain = compose(history, Profile(), WIDE)
    twice = compose(history, Profile(), WIDE, calibration=2.0)
    less = compose(history, Profile(), WIDE, calibration=0.5)
    assert (twice.estimated_tokens, twice.source) == (2 * plain.raw_tokens, "calibrated")
    assert (less.estimated_tokens, less.source) == (plain.raw_tokens, "estimate")
    trimmed = compose(history, Profile(max_context_tokens=plain.raw_tokens), WIDE, calibration=2.0)
    assert trimmed.trims[0].tokens is not None
    assert trimmed.trims[0].tokens.before_source == "calibrated"


def test_schemas_and_hooks_text_count():
    history = plain_history(1)
    bare = compose(history, Profile(), WIDE)
    full = compose(history, Profile(), WIDE, [SHELL], extra_tokens=100)
    schema = -(-(5 + 13 + 17) // 4) + 4
    assert full.raw_tokens == bare.raw_tokens + 100 + schema
    assert full.message_tokens == bare.message_tokens


def test_the_output_limit_is_cut_to_what_is_left():
    history = plain_history(1, 4000)
    route = Route("p", "m", 4_000, max_output_tokens=3_500)
    composed = compose(history, Profile(), route)
    assert composed.max_output_tokens == 4_000 - composed.estimated_tokens
    assert composed.target == 500
    apart = Route("p", "m", 4_000, max_output_tokens=3_500, output_counted_apart=True)
    assert compose(history, Profile(), apart).max_output_tokens == 3_500
    assert compose(history, Profile(), Route("p", "m", 4_000)).max_output_tokens is None


def test_a_request_that_cannot_fit_fails_with_both_numbers_and_loses_nothing():
    history = plain_history(2, 8_000)
    with pytest.raises(ContextWindowExceeded) as caught:
        compose(history, Profile(), Route("p", "m", 4_000))
    assert caught.value.model_context_window == 4_000
    assert str(caught.value.estimated_tokens) in str(caught.value)
    assert "max_tool_result_chars" in str(caught.value)
    assert history.turn_count == 2
    assert compose(history, Profile(), WIDE).history.turn_count == 2
    assert compose(history, Profile(), Route("p", "m", 4_000), check_capacity=False).history.turn_count == 1


def test_the_capacity_margin_is_exact():
    history = plain_history(1, 4_000)
    size = compose(history, Profile(), WIDE).estimated_tokens
    compose(history, Profile(), Route("p", "m", size + 256))
    with pytest.raises(ContextWindowExceeded):
        compose(history, Profile(), Route("p", "m", size + 255))


def test_an_assumed_window_warns_once_a_turn_and_sends():
    history = History()
    history.open_turn("t1", user("x" * 200_000))
    first = compose(history, Profile(), Route("p", "m"))
    assert [said.title for said in first.warnings] == ["The request may be too large for the model"]
    assert compose(first.history, Profile(), Route("p", "m")).warnings == ()
    first.history.close_turn()
    first.history.open_turn("t2", user("y" * 200_000))
    assert len(compose(first.history, Profile(), Route("p", "m")).warnings) == 1


def test_a_full_system_prompt_warns_with_the_setting():
    history = plain_history(2, system=("s" * 8_000,))
    composed = compose(history, Profile(max_context_tokens=1_000), WIDE)
    (warning,) = composed.warnings
    assert "max_context_tokens" in warning.description
    assert "2004" in warning.description
    assert "1000" in warning.description
    assert composed.history.turn_count == 1


def test_the_slack_hint_comes_on_the_third_prompt_in_a_row_and_once():
    history = plain_history(5)
    profile = Profile(max_history_messages=5)
    hints = []
    for index in range(6):
        history.open_turn(f"n{index}", user("q"))
        composed = compose(history, profile, WIDE)
        history = compose(composed.history, profile, WIDE).history
        hints.append([warning.title for warning in composed.warnings])
        history.close_turn()
    assert hints == [[], [], ["History is trimmed on every prompt"], [], [], []]


def test_a_real_picture_costs_the_same_whatever_its_size():
    history = History()
    history.open_turn("t1", Row("user", "What is this?", images=(Image("image/png", "A" * 4_000_000),)))
    composed = compose(history, Profile(), WIDE)
    assert (composed.message_tokens, composed.images) == (1600 + 4 + 4, 1)


def test_an_unanswered_call_is_kept_out_and_the_rest_is_sent():
    history = History()
    add_turn(history, "t1", [user("q"), called("a", "b", text="look"), result("b")])
    history.open_turn("t2", user("next"))
    rows = compose(history, Profile(), WIDE, [SHELL]).rows()
    assert [call.id for row in rows for call in row.tool_calls] == ["b"]
    assert rows[1].content == "look"


def test_the_final_summary_names_the_tools_although_it_offers_none():
    history = History()
    for index in range(4):
        add_turn(history, f"t{index}", [user("q"), called(f"c{index}"), result(f"c{index}")])
    composed = compose(history, Profile(keep_tool_context_turns=0), WIDE, (), callable_tools={"shell"})
    assert composed.collapsed_turns == 3
    assert composed.rows()[1].content == "[Tool exchange: 1 tool call(s) — results collapsed]"


def shortening_history(rounds: int) -> History:
    history = History(["sys"])
    history.open_turn("t1", user("do it"))
    for index in range(rounds):
        history.append([called(f"c{index}"), result(f"c{index}", "r" * 4_000)])
    return history


def test_a_running_turn_that_is_too_large_fails_by_default():
    with pytest.raises(ContextWindowExceeded):
        compose(shortening_history(8), Profile(), Route("p", "m", 4_000), [SHELL])


def test_a_turn_with_nothing_to_shorten_raises_no_notice():
    history = shortening_history(1)
    history.append([said("x" * 40_000)])
    route = Route("p", "m", 4_000)
    composed = compose(history, PRESETS["tight"], route, [SHELL], check_capacity=False)
    assert (composed.trims, composed.ledger().shortened) == ((), 0)


def test_shortening_cuts_the_oldest_results_and_keeps_prompt_pairs_and_newest():
    history = shortening_history(8)
    composed = compose(history, PRESETS["local_small"], Route("p", "m", 4_000), [SHELL])
    rows = composed.rows()
    short = [
        row.content.startswith("[result shortened to fit: 4000 bytes; ") for row in rows if row.role == "tool"
    ]
    assert short == sorted(short, reverse=True)
    assert not short[-1]
    (trim,) = composed.trims
    assert (trim.reason, trim.strategy) == (Reason.SHORTENED, "shorten")
    assert trim.dropped_messages == sum(short) == composed.ledger().shortened
    assert composed.estimated_tokens <= 3_000


def test_a_turn_smaller_than_its_breadcrumb_does_not_stand_in_the_way_of_shortening():
    running = [called("c0"), result("c0", "r" * 4_000), called("c1"), result("c1", "ok")]
    history = plain_history(1, size=0)
    history.open_turn("t1", user("do it"))
    history.append(running)
    profile = replace(PRESETS["local_small"], keep_tool_context_turns=0)
    composed = compose(history, profile, Route("p", "m", 1_200), [SHELL])
    (trim,) = composed.trims
    assert (trim.reason, trim.dropped_turns, trim.kept_turns) == (Reason.SHORTENED, 0, 2)


def test_what_was_shortened_stays_so_and_is_told_only_when_more_goes():
    profile, route = PRESETS["local_small"], Route("p", "m", 4_000)
    history = shortening_history(0)
    sent, told = [], []
    for index in range(8):
        composed = compose(history, profile, route, [SHELL])
        assert compose(composed.history, profile, route, [SHELL]).trims == ()
        told.append(sum(trim.dropped_messages for trim in composed.trims))
        sent.append(composed)
        history = composed.history
        history.append([called(f"c{index}"), result(f"c{index}", "r" * 4_000)])
    assert sum(told) == sent[-1].ledger().shortened > 2
    # Between two cuts only the new round is a new segment; a cut changes the rounds it cuts.
    for before, after, cut in zip(sent, sent[1:], told[1:], strict=False):
        fresh = [one for one in after.segments if not any(one is old for old in before.segments)]
        assert len(fresh) <= 1 + cut


def test_many_tools_above_the_window_are_refused_before_dispatch():
    tools = [ToolSpec(f"tool{index}", "d" * 400, "{}") for index in range(50)]
    with pytest.raises(ContextWindowExceeded):
        compose(plain_history(1), Profile(), Route("p", "m", 4_000), tools)
