"""Which turns must go before a call, and what is said about it. Builds no request."""

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.events import TrimTokens
from runtime.history.budget import (
    CAPACITY_MARGIN,
    ContextBudget,
    CountLimit,
    count_limit,
    slack_target,
)
from runtime.history.dropping import head_of, may_go, without
from runtime.history.load import CallShape, Load, weigh
from runtime.history.notice import Reason, Strategy, TrimNotice
from runtime.history.turns import History, entry_count
from runtime.profiles import Profile

MOST_NOTES = 1024
"""Tokens of notes about dropped turns."""


@dataclass(frozen=True, slots=True)
class TokenLimit:
    """Above `target` (calibrated, whole request) turns go until it is at most `aim`.

    ceiling: a cap on the messages alone, uncalibrated, set after the provider refused a request.
    """

    target: int
    aim: int
    ceiling: int | None = None

    def exceeded(self, load: Load) -> bool:
        """The request is too large as it is."""
        return load.request_tokens() > self.target or not self._under_ceiling(load.messages)

    def reached(self, load: Load, messages: int) -> bool:
        """With that many tokens of messages it is small enough."""
        return load.request_tokens(messages) <= self.aim and self._under_ceiling(messages)

    def _under_ceiling(self, messages: int) -> bool:
        return self.ceiling is None or messages <= self.ceiling


def token_limit(target: int, profile: Profile, ceiling: int | None = None) -> TokenLimit:
    """The limit for a target, with the profile's slack."""
    return TokenLimit(target, slack_target(target, profile.trim_slack_ratio), ceiling)


@dataclass(frozen=True, slots=True)
class Cut:
    """What is left after both limits, and the notice, if anything went.

    Its token figures describe the token budget's part; turns the count limit took are not in them.
    """

    load: Load
    notice: TrimNotice | None


def cut_to_limits(
    history: History, shape: CallShape, profile: Profile, budget: ContextBudget, limit: TokenLimit
) -> Cut:
    """Drop the oldest turns until both limits hold or only the newest turn is left."""
    counted = surplus_turns(history, count_limit(profile), may_go(history, profile))
    kept = without(history, counted) if counted else history
    load = left = weigh(kept, shape, profile.keep_tool_context_turns)
    if limit.exceeded(load):
        room = max(notes_room(limit.target, profile) - kept.beside.notes_tokens, 0)
        order = may_go(kept, profile)
        left = load.without(load.fewest_to_drop(order, lambda messages: limit.reached(load, messages + room)))
        left = _without_head(left, profile, budget, limit)
    strategy = Strategy.HEAD_TAIL if profile.retention == "head-tail" else Strategy.RECENT
    if left is not load:
        note = _overruled(profile, budget)
        reason = Reason.TOKEN_BUDGET if limit.ceiling is None else Reason.OVERFLOW
        tokens = _tokens(load, left, limit)
        return Cut(left, whole_turn_notice(history, left.history, reason, tokens, note, strategy))
    if not counted:
        return Cut(left, None)
    return Cut(left, whole_turn_notice(history, left.history, Reason.TURN_LIMIT, strategy=strategy))


def _without_head(left: Load, profile: Profile, budget: ContextBudget, limit: TokenLimit) -> Load:
    """The head goes too where the window itself would not take it beside the newest turn."""
    head = head_of(left.history, profile)
    window = budget.window - CAPACITY_MARGIN
    too_large = budget.window_known and left.request_tokens() > window
    refused = limit.ceiling is not None and left.messages > limit.ceiling
    if head is None or not (too_large or refused):
        return left
    return left.without([head]) if left.face(head).tokens > left.history.beside.crumb.tokens else left


def notes_room(target: int, profile: Profile) -> int:
    """Tokens that are kept free for notes about dropped turns."""
    return min(MOST_NOTES, target // 8) if profile.dropped_turns == "summarize" else 0


def _tokens(load: Load, left: Load, limit: TokenLimit) -> TrimTokens:
    source = load.shape.source
    cap = limit.target if limit.ceiling is None else min(limit.target, load.request_tokens(limit.ceiling))
    return TrimTokens(cap, load.request_tokens(), left.request_tokens(), source, source)


def _overruled(profile: Profile, budget: ContextBudget) -> str:
    if budget.budget:
        return ""
    return (
        f"max_context_tokens = {profile.max_context_tokens} asks for no trimming, but the request did "
        f"not fit the window of {budget.window} tokens."
    )


def whole_turn_notice(
    history: History,
    left: History,
    reason: Reason,
    tokens: TrimTokens | None = None,
    note: str = "",
    strategy: Strategy = Strategy.RECENT,
) -> TrimNotice:
    """The notice for the turns that `left` no longer has."""
    return TrimNotice(
        dropped_messages=history.row_count - left.row_count,
        dropped_turns=history.turn_count - left.turn_count,
        kept_turns=left.turn_count,
        reason=reason.value,
        strategy=strategy.value,
        tokens=tokens,
        note=note,
    )


def surplus_turns(history: History, limit: CountLimit, order: Sequence[int]) -> tuple[int, ...]:
    """Which turns the count limit takes, out of those that may go."""
    turns = history.turn_count
    if limit.unit == "turns":
        return tuple(order[: turns - min(limit.aim, limit.limit)]) if turns > limit.limit else ()
    current = entry_count(history.current.rows) if history.current is not None else 0
    entries = history.sums.entries + current
    if entries <= limit.limit:
        return ()
    gone: list[int] = []
    for turn in order:
        if entries <= limit.aim:
            break
        entries -= entry_count(history.past[turn].rows)
        gone.append(turn)
    return tuple(gone)
