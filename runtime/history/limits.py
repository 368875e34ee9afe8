"""Which turns must go before a call, and what is said about it. Builds no request."""

from dataclasses import dataclass

from runtime.events import TrimTokens
from runtime.history.budget import ContextBudget, CountLimit, count_limit, slack_target
from runtime.history.load import CallShape, Load, weigh
from runtime.history.notice import Reason, Strategy, TrimNotice
from runtime.history.turns import History, entry_count
from runtime.profiles import Profile


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
    counted = surplus_turns(history, count_limit(profile))
    kept = history.without_oldest(counted) if counted else history
    load = left = weigh(kept, shape, profile.keep_tool_context_turns)
    if limit.exceeded(load):
        dropped, _ = load.fewest_to_drop(lambda messages: limit.reached(load, messages))
        left = load.without_oldest(dropped)
    if left is not load:
        note = _overruled(profile, budget)
        reason = Reason.TOKEN_BUDGET if limit.ceiling is None else Reason.OVERFLOW
        return Cut(left, whole_turn_notice(history, left.history, reason, _tokens(load, left, limit), note))
    return Cut(left, whole_turn_notice(history, left.history, Reason.TURN_LIMIT) if counted else None)


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
    history: History, left: History, reason: Reason, tokens: TrimTokens | None = None, note: str = ""
) -> TrimNotice:
    """The notice for the turns that `left` no longer has."""
    return TrimNotice(
        dropped_messages=history.row_count - left.row_count,
        dropped_turns=history.turn_count - left.turn_count,
        kept_turns=left.turn_count,
        reason=reason.value,
        strategy=Strategy.RECENT.value,
        tokens=tokens,
        note=note,
    )


def surplus_turns(history: History, limit: CountLimit) -> int:
    """How many of the oldest turns the count limit takes; never the newest."""
    turns = history.turn_count
    if limit.unit == "turns":
        return turns - min(limit.aim, limit.limit) if turns > limit.limit else 0
    current = entry_count(history.current.rows) if history.current is not None else 0
    entries = history.sums.entries + current
    dropped = 0
    if entries > limit.limit:
        while dropped < turns - 1 and entries > limit.aim:
            entries -= entry_count(history.past[dropped].rows)
            dropped += 1
    return dropped
