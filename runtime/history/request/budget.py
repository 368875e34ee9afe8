"""How many tokens a request may have: the budget, the window behind it, the room kept for the answer."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from runtime.values.profiles import DEFAULT_CONTEXT_TOKENS, DEFAULT_MAX_TURNS, Profile, Route

WindowSource = Literal["configured", "learned", "compatibility_fallback"]

CAPACITY_MARGIN = 256
"""Tokens of the window that a request never fills."""

_RESERVE = 4096


@dataclass(frozen=True, slots=True)
class ContextBudget:
    """The limits of one call, tokens. budget 0: proactive trimming is off.

    reported_window is what clients may be told: None when the window is only assumed. window_inferred: it
    showed in what the provider left of a prompt.
    """

    budget: int
    window: int
    window_source: WindowSource
    reported_window: int | None
    dispatch_trim_budget: int
    window_inferred: bool = False

    @property
    def window_known(self) -> bool:
        """False when the window is a stub and no truth about the model."""
        return self.window_source != "compatibility_fallback"

    @property
    def window_refuses(self) -> bool:
        """Whether a request that is larger is not sent: what was only inferred may close no session."""
        return self.window_known and not self.window_inferred


def effective_context_budget(profile: Profile, route: Route) -> ContextBudget:
    """The limits for this profile on this route."""
    window, source = _window(profile, route)
    budget = _budget(profile, window)
    return ContextBudget(
        budget=budget,
        window=window,
        window_source=source,
        reported_window=None if source == "compatibility_fallback" else window,
        dispatch_trim_budget=budget or window,
        window_inferred=source == "learned" and route.window_inferred,
    )


class MeterSize(NamedTuple):
    """What a meter is measured against, tokens: the window, or the budget while that is not known."""

    tokens: int
    is_budget: bool


def meter_size(profile: Profile, route: Route) -> MeterSize:
    """The size of the meter for this profile on this route."""
    budget = effective_context_budget(profile, route)
    return MeterSize(budget.reported_window or budget.dispatch_trim_budget, budget.reported_window is None)


def _window(profile: Profile, route: Route) -> tuple[int, WindowSource]:
    if route.context_window and route.context_window > 0:
        return route.context_window, "configured"
    if route.learned_window and route.learned_window > 0:
        return route.learned_window, "learned"
    return max(DEFAULT_CONTEXT_TOKENS, profile.max_context_tokens or 0), "compatibility_fallback"


def _budget(profile: Profile, window: int) -> int:
    limit = profile.max_context_tokens
    if limit is not None and limit <= 0:
        return 0
    ratio = profile.context_compact_ratio
    if ratio is not None and 0.0 < ratio <= 1.0:
        budget = max(int(window * ratio), 1)
        budget = budget if limit is None else min(budget, limit)
    else:
        budget = DEFAULT_CONTEXT_TOKENS if limit is None else limit
    pruning = profile.history_pruning
    if pruning.enabled and pruning.max_tokens > 0:
        budget = min(budget, pruning.max_tokens)
    return min(budget, window)


def output_reserve(window: int, route: Route) -> int:
    """Tokens of the window that are kept free for the answer.

    An answer that was given all of the window, or more, is no reserve: it takes what the messages leave.
    """
    if route.output_counted_apart:
        return 0
    limit = route.max_output_tokens
    return limit if limit and limit < window else min(_RESERVE, window // 4)


def trim_target(budget: ContextBudget, route: Route) -> int:
    """Above this a request is trimmed, tokens, at least 1.

    Never above what the capacity check lets through: a request that a trim could mend is not to be refused.
    """
    margin = CAPACITY_MARGIN if budget.window_known else 0
    room = budget.window - max(output_reserve(budget.window, route), margin)
    return max(min(budget.dispatch_trim_budget, room), 1)


def slack_target(target: int, slack: float) -> int:
    """What a trim aims at once the target is passed, so that the next trims are rare."""
    return max(int(target * (1 - slack)), 1)


@dataclass(frozen=True, slots=True)
class CountLimit:
    """The count limit in its unit: above `limit` a trim starts, `aim` is what it leaves at most."""

    unit: Literal["turns", "messages"]
    limit: int
    aim: int


def count_limit(profile: Profile) -> CountLimit:
    """The profile's count limit; at least the newest turn is always kept, whatever it says."""
    limit = profile.max_history_messages
    if limit is None:
        older = max(DEFAULT_MAX_TURNS, 2 * profile.max_tool_iterations + 2)
        limit = older if profile.history_unit == "messages" else DEFAULT_MAX_TURNS
    aim = max(1, int(limit * (1 - profile.trim_slack_ratio)))
    return CountLimit(profile.history_unit, max(limit, 1), aim)


def output_limit(budget: ContextBudget, route: Route, estimated: int) -> int | None:
    """The request's own output limit: the route's, cut to what the request leaves of a known window."""
    limit = route.max_output_tokens
    if limit is None or route.output_counted_apart or not budget.window_known:
        return limit
    room = budget.window - estimated
    # A window that a request is larger than was inferred wrongly, or the provider cuts the request to it.
    return min(limit, room) if room > 0 else limit
