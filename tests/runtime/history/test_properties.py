"""What holds for any live history and any limits."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from runtime.history.live.history import History
from runtime.history.request.compose import Composed, compose
from runtime.history.request.meter import current_face
from runtime.history.request.recovery import recover
from runtime.history.request.trims import mended, trim_after_reply
from runtime.history.rows.notice import BREADCRUMB_TEXT
from runtime.history.rows.pairs import pairs_ok, repair
from runtime.history.rows.structured import rows_from_entries
from runtime.values.errors import ContextWindowExceeded, ProviderError, ProviderErrorKind
from runtime.values.profiles import Profile, Route
from runtime.values.rows import Row
from tests.runtime.history.strategies import EXAMPLES, TOOLS, histories, profiles, routes


def ask(history: History, profile: Profile, route: Route) -> Composed | None:
    try:
        return compose(history, profile, route, TOOLS)
    except ContextWindowExceeded:
        return None


def face_of(history: History) -> list[Row]:
    return [row for turn in history.turns for row in turn.rows]


def snapshot(history: History) -> tuple[object, ...]:
    rows = face_of(history)
    return rows, history.crumb_present, history.marks, history.tokens, history.first_kept_turn_id


@EXAMPLES
@given(histories(broken=True), profiles, routes)
def test_kept_turns_are_a_suffix_and_the_input_is_untouched(history, profile, route):
    before = snapshot(history)
    composed = ask(history, profile, route)
    assert snapshot(history) == before
    if composed is None:
        return
    kept = [turn.turn_id for turn in composed.history.turns]
    whole = [turn.turn_id for turn in history.turns]
    assert kept
    assert kept == whole[-len(kept) :]
    assert composed.history.turns[-1].rows == history.turns[-1].rows
    assert face_of(composed.history) == face_of(history)[-composed.history.row_count :]


@EXAMPLES
@given(histories(broken=True), profiles, routes, st.booleans())
def test_a_request_has_whole_pairs_one_system_row_and_one_breadcrumb(history, profile, route, collapse):
    try:
        composed = compose(history, profile, route, TOOLS, collapse=collapse)
    except ContextWindowExceeded:
        return
    rows = composed.rows()
    assert not composed.healed
    assert pairs_ok(rows)
    lead = [text for text in (*history.system.leading, *history.system.late) if text]
    assert [row.content for row in rows if row.role == "system"] == (["\n\n".join(lead)] if lead else [])
    if lead:
        assert rows[0].role == "system"
    if composed.history.crumb_present:
        assert rows[bool(lead)].content == BREADCRUMB_TEXT


@EXAMPLES
@given(histories(broken=True), profiles, routes)
def test_the_newest_turn_is_sent_whole_unless_shortened(history, profile, route):
    composed = ask(history, profile, route)
    if composed is None:
        return
    turn = composed.history.turns[-1]
    newest = current_face(composed.history).rows()
    assert composed.rows()[-len(newest) :] == newest or not newest
    if not composed.history.marks.rounds_cut:
        assert newest == list(turn.repaired.rows)
    else:
        assert profile.running_turn_overflow == "shorten"
        assert [row.tool_call_id for row in newest] == [row.tool_call_id for row in turn.repaired.rows]
        assert newest[0] == turn.repaired.rows[0]


@EXAMPLES
@given(histories(), profiles, routes)
def test_a_history_the_runtime_trimmed_leaves_the_sweep_nothing_to_do(history, profile, route):
    composed = ask(history, profile, route)
    if composed is not None:
        found = mended(composed.history)
        assert (found.rows, found.calls) == (0, 0)
        rows = composed.rows()
        assert repair(rows).rows == tuple(rows)


@EXAMPLES
@given(histories(broken=True), profiles, st.integers(500, 4000), st.booleans())
def test_nothing_is_refused_that_a_trim_would_have_let_through(history, profile, window, apart):
    roomy = replace(profile, max_context_tokens=None, max_history_messages=99, trim_slack_ratio=0.0)
    route = Route("p", "m", window, output_counted_apart=apart)
    if ask(history, roomy, route) is None:
        assert ask(history.without_oldest(history.turn_count - 1), roomy, route) is None


@EXAMPLES
@given(histories(broken=True), profiles, routes)
def test_both_faces_name_the_same_turns(history, profile, route):
    composed = ask(history, profile, route)
    if composed is not None:
        for turn in composed.history.turns:
            assert tuple(rows_from_entries(turn.entries)) == tuple(
                replace(row, images=(), origin=None) if row.role == "assistant" else row for row in turn.rows
            )


@EXAMPLES
@given(histories(broken=True), profiles, routes)
def test_the_ledger_and_the_sums_add_up(history, profile, route):
    composed = ask(history, profile, route)
    if composed is None:
        return
    dropped = sum(trim.dropped_messages for trim in composed.trims if trim.dropped_turns)
    ledger = composed.ledger()
    if not any(trim.strategy == "shorten" for trim in composed.trims):
        assert history.row_count == ledger.recorded + dropped
    assert ledger.recorded == ledger.sent + ledger.collapsed + ledger.swept
    kept = composed.history
    assert kept.row_count == len(face_of(kept))
    assert composed.message_tokens == sum(
        [face.tokens for face in _faces(composed)]
        + [
            kept.system.piece.tokens if kept.system.piece else 0,
            kept.beside.crumb.tokens * kept.crumb_present,
        ]
    )


def _faces(composed: Composed):
    kept = composed.history
    for index, turn in enumerate(kept.turns[:-1]):
        older = index < composed.collapsed_turns
        yield turn.collapsed(composed.shape.callable_tools) if older else turn.whole()
    yield current_face(kept)


@EXAMPLES
@given(histories(broken=True), profiles, routes)
def test_compose_is_idempotent_and_sends_the_same_segments(history, profile, route):
    first = ask(history, profile, route)
    if first is None:
        return
    second = compose(first.history, profile, route, TOOLS)
    assert second.trims == ()
    assert second.warnings == ()
    assert [id(segment) for segment in second.segments] == [id(segment) for segment in first.segments]
    assert second.estimated_tokens == first.estimated_tokens


@EXAMPLES
@given(histories(broken=True), profiles, st.integers(1, 4000), st.integers(1, 4000))
def test_a_bigger_budget_never_keeps_less(history, profile, one, other):
    small, large = sorted((one, other))
    route = Route("p", "m", 1_000_000)
    kept = [
        compose(history, replace(profile, max_context_tokens=budget), route, TOOLS).history.turn_count
        for budget in (small, large)
    ]
    assert kept[0] <= kept[1]


@EXAMPLES
@given(histories(broken=True), profiles, st.sampled_from([40, 300, 2000]))
def test_a_token_trim_drops_no_turn_too_many_and_none_too_few(history, profile, budget):
    route = Route("p", "m", 1_000_000)
    tight = replace(profile, max_history_messages=99, history_unit="turns", max_context_tokens=budget)
    wide = replace(tight, max_context_tokens=900_000)
    aim = max(int(budget * (1 - profile.trim_slack_ratio)), 1)

    def size(dropped: int) -> int:
        return compose(history.without_oldest(dropped), wide, route, TOOLS).estimated_tokens

    dropped = history.turn_count - compose(history, tight, route, TOOLS).history.turn_count
    if dropped:
        assert size(0) > budget
        assert size(dropped) <= aim or dropped == history.turn_count - 1
        assert dropped == 1 or size(dropped - 1) > aim
    else:
        assert size(0) <= budget or size(history.turn_count - 1) >= size(0)


@EXAMPLES
@given(histories(broken=True), profiles, routes)
def test_a_notice_tells_the_truth(history, profile, route):
    composed = ask(history, profile, route)
    if composed is None:
        return
    kept = composed.history
    gone = history.turn_count - kept.turn_count
    assert len(composed.trims) <= 1
    assert bool(gone) <= bool(composed.trims)
    for trim in composed.trims:
        assert trim.dropped_turns == gone
        assert trim.kept_turns == kept.turn_count
        assert trim.dropped_messages >= 1
        if trim.strategy == "recent":
            assert trim.dropped_messages == history.row_count - kept.row_count
        if trim.tokens is not None:
            assert trim.tokens.after < trim.tokens.before
            assert trim.tokens.after == composed.estimated_tokens


@EXAMPLES
@given(histories(broken=True), profiles, st.sampled_from([None, 300, 700]))
def test_recovery_is_strictly_smaller_or_says_why_not(history, profile, limit):
    route = Route("p", "m")
    refused = compose(history, profile, route, TOOLS)
    stated = "" if limit is None else f"maximum context length is {limit} tokens"
    error = ProviderError("no", kind=ProviderErrorKind.BAD_REQUEST, retryable=False, detail=stated)
    before = snapshot(refused.history)
    recovery = recover(refused.history, profile, route, refused=refused, error=error)
    assert snapshot(refused.history) == before
    assert recovery.learned_window == limit
    if recovery.composed is None:
        assert recovery.failure is not None
    else:
        assert recovery.composed.raw_tokens < refused.raw_tokens
        assert len(recovery.composed.trims) == 1
        assert pairs_ok(recovery.composed.rows())


@EXAMPLES
@given(histories(), profiles, st.integers(1, 10_000))
def test_the_trim_after_a_reply_keeps_whole_turns(history, profile, reported):
    composed = compose(history, profile, Route("p", "m", 1_000_000), TOOLS)
    live = composed.history
    before = snapshot(live)
    after, notice = trim_after_reply(composed, live, reported, profile)
    assert snapshot(live) == before
    if notice is None:
        assert after is live
    else:
        assert reported > composed.budget.budget > 0
        assert notice.dropped_turns == live.turn_count - after.turn_count >= 1
        assert notice.tokens is not None
        assert notice.tokens.after <= notice.tokens.before
        assert after.turns[-1] is live.turns[-1]
