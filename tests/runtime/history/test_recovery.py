"""After a refusal: what is dropped, what is learned, when the answer is to blame, when nothing helps."""

from runtime.history.live.history import History
from runtime.history.request.compose import compose
from runtime.history.request.recovery import recover
from runtime.history.rows.notice import Reason
from runtime.history.rows.trim import recover_from_overflow
from runtime.values.profiles import PRESETS, Profile, Route
from tests.runtime.history.helpers import SHELL, called, plain_history, refusal, result, user

ROUTE = Route("p", "m", max_output_tokens=4_000)
TOO_LONG = "prompt is too long"


def test_two_thirds_are_kept_with_one_notice():
    history = plain_history(9)
    refused = compose(history, Profile(), ROUTE)
    recovery = recover(refused.history, Profile(), ROUTE, refused=refused, error=refusal(TOO_LONG))
    assert recovery.composed is not None
    assert recovery.recovered
    (trim,) = recovery.composed.trims
    assert trim.reason == Reason.OVERFLOW
    assert trim.tokens is not None
    assert trim.tokens.budget == 2 * refused.message_tokens // 3
    assert recovery.composed.message_tokens <= trim.tokens.budget
    assert recovery.composed.history.crumb_present
    assert recovery.learned_window is None


def test_each_retry_shrinks_until_only_the_newest_turn_is_left():
    composed = compose(plain_history(9), Profile(), ROUTE)
    sizes = [composed.raw_tokens]
    while True:
        recovery = recover(composed.history, Profile(), ROUTE, refused=composed, error=refusal(TOO_LONG))
        if recovery.composed is None:
            break
        composed = recovery.composed
        sizes.append(composed.raw_tokens)
    assert sizes == sorted(set(sizes), reverse=True)
    assert composed.history.turn_count == 1
    assert recovery.failure is not None
    assert str(sizes[-1]) in recovery.failure.message
    assert "context_window" in recovery.failure.message


def test_a_stated_limit_is_learned_and_caps_the_target():
    history = plain_history(20, 400)
    refused = compose(history, Profile(), ROUTE)
    error = refusal("This model's maximum context length is 1200 tokens. However, you requested 9000 tokens")
    recovery = recover(refused.history, Profile(), Route("p", "m"), refused=refused, error=error)
    assert recovery.learned_window == 1200
    assert recovery.composed is not None
    assert recovery.composed.budget.window_source == "learned"
    assert recovery.composed.estimated_tokens <= 900
    assert len(recovery.composed.trims) == 1


def test_a_refusal_that_blames_the_answer_shrinks_that_and_drops_no_turn():
    refused = compose(plain_history(9), Profile(), ROUTE)
    error = refusal("input length and `max_tokens` exceed context limit: 5500 + 4000 > 8192, decrease them")
    recovery = recover(refused.history, Profile(), ROUTE, refused=refused, error=error)
    assert recovery.composed is not None
    assert recovery.composed.max_output_tokens == 8192 - 5500
    assert recovery.composed.segments == refused.segments
    assert recovery.composed.trims == ()
    assert (recovery.learned_window, recovery.recovered) == (8192, False)
    # The same refusal again cannot shrink the answer any more: now turns go.
    second = recover(refused.history, Profile(), ROUTE, refused=recovery.composed, error=error)
    assert second.recovered


def test_an_output_limit_is_kept_apart_from_the_window():
    refused = compose(plain_history(3), Profile(), ROUTE)
    error = refusal("max_tokens: 4000 > 2048, which is the maximum allowed number of output tokens for m")
    recovery = recover(refused.history, Profile(), ROUTE, refused=refused, error=error)
    assert (recovery.learned_window, recovery.output_limit) == (None, 2048)
    assert recovery.composed is not None
    assert recovery.composed.max_output_tokens == 2048


def test_with_shorten_the_running_turn_gives_way():
    history = History()
    history.open_turn("t1", user("go"))
    for index in range(6):
        history.append([called(f"c{index}"), result(f"c{index}", "r" * 2_000)])
    refused = compose(history, Profile(), ROUTE, [SHELL])
    failed = recover(refused.history, Profile(), ROUTE, refused=refused, error=refusal(TOO_LONG))
    assert failed.composed is None
    recovery = recover(
        refused.history, PRESETS["local_small"], ROUTE, refused=refused, error=refusal(TOO_LONG)
    )
    assert recovery.composed is not None
    assert recovery.composed.trims[0].reason == Reason.SHORTENED
    assert recovery.composed.history.turn_count == 1


def test_a_learned_window_that_the_newest_turn_exceeds_is_a_clear_failure():
    history = plain_history(1, 40_000)
    refused = compose(history, Profile(), ROUTE)
    error = refusal("request (20010 tokens) exceeds the available context size (8448 tokens)")
    recovery = recover(refused.history, Profile(), ROUTE, refused=refused, error=error)
    assert recovery.composed is None
    assert recovery.failure is not None
    assert recovery.failure.model_context_window == recovery.learned_window == 8448


def test_plain_rows_recover_to_a_stated_limit():
    rows = [row for turn in plain_history(6).turns for row in turn.rows]
    recovery = recover_from_overflow(rows, stated_limit=100)
    assert recovery.target_tokens == 100
    assert (recovery.kept_turns, recovery.crumb_present) == (1, True)


def test_a_limit_that_no_request_could_meet_is_not_believed():
    refused = compose(plain_history(9), Profile(), ROUTE)
    error = refusal("maximum context length is 32 tokens")
    recovery = recover(refused.history, Profile(), ROUTE, refused=refused, error=error)
    assert recovery.learned_window is None
    assert recovery.recovered
