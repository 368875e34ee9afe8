"""After a provider refused a request as too long: what to send instead, once more. Sends nothing."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from runtime.history.live.history import History
from runtime.history.request.budget import CAPACITY_MARGIN
from runtime.history.request.compose import Composed, prepare
from runtime.history.request.limits import helpful_settings
from runtime.history.request.meter import CallShape
from runtime.history.rows.overflow import Sizes, stated_sizes
from runtime.history.rows.trim import recovery_target
from runtime.values.errors import ContextWindowExceeded, ProviderError
from runtime.values.profiles import Profile, Route
from runtime.values.rows import ToolSpec

SMALLEST_ANSWER = 256
"""Fewer output tokens than this are not worth a retry."""
LESS_BY_HAND = "`/compact` leaves older turns out, `/clear` all of them."


@dataclass(frozen=True, slots=True)
class Recovery:
    """composed: the smaller request to retry with, or None; then `failure` is the error to raise.

    learned_window, output_limit: what the error told about this route, tokens, to be kept either way.
    recovered: at least one turn was dropped.
    """

    composed: Composed | None
    failure: ContextWindowExceeded | None
    learned_window: int | None = None
    output_limit: int | None = None
    recovered: bool = False


def recover(
    history: History,
    profile: Profile,
    route: Route,
    tools: Iterable[ToolSpec] | None = None,
    *,
    refused: Composed,
    error: ProviderError | Sizes,
    calibration: float | None = None,
    share: float | None = None,
) -> Recovery:
    """Make the refused request smaller: its output limit if that is blamed, else two thirds of it.

    history: the live one, left as it is. error: or the sizes that it stated. tools, calibration: as for the
    refused request unless given. share: what to aim at in place of two thirds; 0.0 for as little as may be. A
    request that is not strictly smaller is never returned.
    """
    sizes = error if isinstance(error, Sizes) else stated_sizes(error)
    learned = _window(sizes)
    limited = sizes.limit if sizes.limits_output else None
    shrunk = _smaller_answer(refused, sizes)
    if shrunk is not None:
        retry = replace(refused, history=history, trims=(), warnings=(), max_output_tokens=shrunk)
        return Recovery(retry, None, learned, limited)
    shape = _shape(refused, tools, calibration)
    known = route if learned is None else replace(route, learned_window=learned, window_inferred=False)
    ceiling = recovery_target(refused.message_tokens, learned)
    if share is not None:
        ceiling = max(min(int(refused.message_tokens * share), ceiling), 1)
    try:
        composed = prepare(history, profile, known, shape, ceiling=ceiling)
    except ContextWindowExceeded as failure:
        return Recovery(None, failure, learned, limited)
    if composed.raw_tokens >= refused.raw_tokens:
        return Recovery(None, too_long(refused, profile, sizes), learned, limited)
    recovered = any(trim.dropped_turns for trim in composed.trims)
    return Recovery(composed, None, learned, limited, recovered)


def _window(sizes: Sizes) -> int | None:
    """The window the error names; a figure no request could ever fit is none."""
    believable = not sizes.limits_output and (sizes.limit or 0) > CAPACITY_MARGIN
    return sizes.limit if believable else None


def _shape(refused: Composed, tools: Iterable[ToolSpec] | None, calibration: float | None) -> CallShape:
    shape = refused.shape
    if tools is not None:
        shape = replace(shape, tools=tuple(tools))
    return shape if calibration is None else replace(shape, calibration=calibration)


def _smaller_answer(refused: Composed, sizes: Sizes) -> int | None:
    """A smaller output limit that makes the same messages fit, if the answer is what was too much."""
    if not sizes.blames_output or sizes.limit is None:
        return None
    room = sizes.limit if sizes.limits_output else sizes.limit - (sizes.input or 0)
    asked = refused.max_output_tokens or sizes.output
    if room < SMALLEST_ANSWER or (asked is not None and room >= asked):
        return None
    return room


def too_long(refused: Composed, profile: Profile, sizes: Sizes) -> ContextWindowExceeded:
    """The error for a request that stays too long for its provider, whatever is left out."""
    window = sizes.limit or refused.budget.window
    counted = sizes.requested or refused.estimated_tokens
    alone = refused.history.turn_count == 1
    left = "Only the newest turn is left, and it is never cut." if alone else LESS_BY_HAND
    return ContextWindowExceeded(
        f"The provider refused the request as too long: about {counted} tokens, its limit is "
        f"{window if sizes.limit else 'not stated'}. {left} {helpful_settings(profile)}",
        estimated_tokens=counted,
        model_context_window=window,
    )
