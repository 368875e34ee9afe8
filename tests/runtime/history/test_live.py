"""Trims outside a call, calibration, the silent cut, and what the sweeps report."""

import pytest

from runtime.history.live.history import History, restore_history
from runtime.history.request.compose import calibration_ratio, compose, silent_cut
from runtime.history.request.trims import mended, trim_after_reply, trim_by_user
from runtime.history.rows.notice import Reason, TrimNotice, merged
from runtime.values.profiles import Profile, Route
from runtime.values.rows import Image, Row
from tests.runtime.history.helpers import SHELL, called, plain_history, result, said, user

ROUTE = Route("p", "m", 1_000_000)


def replied(profile: Profile, turns: int = 10):
    history = plain_history(turns)
    history.open_turn("new", user("q"))
    composed = compose(history, profile, ROUTE, [SHELL])
    live = composed.history
    live.append([said("done")])
    live.close_turn()
    return composed, live


def test_nothing_goes_while_the_provider_counts_no_more_than_the_budget():
    profile = Profile(max_context_tokens=2_000)
    composed, live = replied(profile)
    assert trim_after_reply(composed, live, 2_000, profile) == (live, None)
    off = Profile(max_context_tokens=0)
    composed, live = replied(off)
    assert trim_after_reply(composed, live, 10_000_000, off) == (live, None)


def test_the_providers_count_decides_on_its_own_scale():
    profile = Profile(max_context_tokens=2_000)
    composed, live = replied(profile)
    reported = composed.raw_tokens * 4
    after, notice = trim_after_reply(composed, live, reported, profile)
    assert notice is not None
    assert notice.reason == Reason.TOKEN_BUDGET
    assert notice.tokens is not None
    assert (notice.tokens.before, notice.tokens.before_source) == (reported, "provider")
    assert notice.tokens.after <= 2_000
    assert notice.kept_turns == after.turn_count < live.turn_count
    assert after.crumb_present
    again = compose(after, profile, ROUTE, [SHELL], calibration=4.0)
    assert again.trims == ()


def test_a_reply_larger_than_what_goes_never_reads_as_growth():
    profile = Profile(max_context_tokens=300)
    history = plain_history(4)
    history.open_turn("new", user("q"))
    composed = compose(history, profile, ROUTE)
    live = composed.history
    live.append([said("w" * 40_000)])
    _, notice = trim_after_reply(composed, live, 400, profile)
    assert notice is not None
    assert notice.tokens is not None
    assert notice.tokens.after < notice.tokens.before
    assert notice.tokens.before_source == "calibrated"


def test_the_user_may_trim_and_the_newest_turn_stays():
    history = plain_history(5)
    left, notice = trim_by_user(history, 0)
    assert left.turn_count == 1
    assert notice is not None
    assert (notice.reason, notice.strategy, notice.dropped_messages) == (Reason.USER, "user", 8)
    assert trim_by_user(left, 3) == (left, None)


def test_a_notice_becomes_an_event():
    notice = TrimNotice(3, 1, 2, Reason.USER.value, "user", note="why")
    event = notice.event("id1", used=5, size=9)
    assert (event.trim_id, event.dropped_messages, event.kept_turns) == ("id1", 3, 2)
    assert (event.used, event.size, event.note, event.reason) == (5, 9, "why", "trimmed by the user")


def test_two_notices_of_one_call_become_one():
    first = TrimNotice(4, 2, 1, Reason.TURN_LIMIT.value, "recent", note="a")
    second = TrimNotice(3, 0, 1, Reason.SHORTENED.value, "shorten", note="b")
    both = merged(first, second)
    assert both is not None
    assert (both.dropped_messages, both.dropped_turns, both.reason, both.note) == (7, 2, second.reason, "a b")
    assert merged(None, second) is second
    assert merged(first, None) is first


def test_broken_stored_turns_are_reported():
    rows = [user("q"), called("a", "b", text="look"), result("a"), result("zz")]
    found = mended(restore_history([("t1", rows), ("t2", [user("fine")])]))
    assert (found.turns, found.rows, found.calls) == (1, 1, 1)
    assert mended(plain_history(3)).turns == 0


@pytest.mark.parametrize(("reported", "raw", "ratio"), [(150, 100, 1.5), (0, 100, 1.0), (5, 0, 1.0)])
def test_calibration_needs_both_numbers(reported, raw, ratio):
    assert calibration_ratio(reported, raw) == ratio


def test_a_provider_that_cuts_in_silence_is_found_out():
    composed = compose(plain_history(1, 40_000), Profile(), ROUTE)
    sent = composed.raw_tokens
    warning = silent_cut(composed, 4_096)
    assert warning is not None
    assert "4096" in warning.description
    assert silent_cut(composed, sent // 2) is None
    assert silent_cut(composed, sent // 2, usual_ratio=1.1) is not None
    assert silent_cut(composed, 0) is None
    assert silent_cut(compose(plain_history(1), Profile(), ROUTE), 1) is None


def test_pictures_raise_no_false_alarm():
    history = History()
    history.open_turn("t1", Row("user", "see", images=(Image("image/png", "AA"),) * 9))
    assert silent_cut(compose(history, Profile(), ROUTE), 900) is None
