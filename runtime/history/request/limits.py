"""Which turns must go before a call, the last check before it is sent, and the warnings that go with it.

Each warning is said once. Builds no request.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from runtime.history.live.history import History, Marks, entry_count
from runtime.history.live.without_parts import head_of, may_go, without
from runtime.history.request.budget import (
    CAPACITY_MARGIN,
    ContextBudget,
    CountLimit,
    count_limit,
    slack_target,
)
from runtime.history.request.meter import CallShape, Load, weigh
from runtime.history.rows.notice import Reason, Strategy, TrimNotice
from runtime.values.errors import ContextWindowExceeded
from runtime.values.events import Noticed, TrimTokens
from runtime.values.profiles import Profile

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


TRIMS_BEFORE_HINT = 3
PINNED = " Pinned turns are never left out: `/pin off N` lets one go."


def overfull(estimated_tokens: int, budget: ContextBudget) -> bool:
    """True when a prepared request is larger than the window takes."""
    return estimated_tokens > budget.window - CAPACITY_MARGIN


def require_capacity(
    estimated_tokens: int, budget: ContextBudget, profile: Profile, *, pinned: bool = False
) -> None:
    """Raise ContextWindowExceeded when a request cannot fit a known window. pinned: some turns may not go."""
    if budget.window_refuses and overfull(estimated_tokens, budget):
        raise ContextWindowExceeded(
            f"The request needs about {estimated_tokens} tokens; the model's context window holds "
            f"{budget.window}, {CAPACITY_MARGIN} of which stay free. Nothing was sent or lost. "
            f"{helpful_settings(profile)}{PINNED if pinned else ''}",
            estimated_tokens=estimated_tokens,
            model_context_window=budget.window,
        )


def helpful_settings(profile: Profile) -> str:
    """A sentence with the settings that make a request smaller or its window larger."""
    shorten = "" if profile.running_turn_overflow == "shorten" else ', running_turn_overflow = "shorten"'
    return (
        f"What helps: a smaller max_tool_result_chars{shorten}, fewer tools, a shorter prompt or system "
        "prompt, or a larger context_window if the model has one."
    )


def above_target(load: Load, budget: ContextBudget, target: int) -> str:
    """By how much what no trim may take is larger than there is room for, as sentences; '' when it fits.

    A floor of system text and tools that fills the budget alone says so itself.
    """
    needed = load.request_tokens()
    if needed <= target or _floor(load, budget) is not None:
        return ""
    return above_text(needed, target, alone=load.history.turn_count == 1)


def above_text(needed: int, target: int, *, alone: bool) -> str:
    """The same for figures. alone: no other turn is left, else those that are stay for good."""
    what = "The newest turn alone is" if alone else "The newest turn and those that never go are"
    return (
        f"{what} larger than the context budget: about {needed} tokens are sent, {needed - target} more than "
        f"the {target} there is room for. A larger max_context_tokens keeps more beside it."
    )


def call_warnings(
    load: Load, profile: Profile, budget: ContextBudget, *, trimmed: bool, above: str, noted: bool
) -> tuple[tuple[Noticed, ...], Marks]:
    """The warnings of this call that were not given earlier in the turn, and the marks afterwards.

    above: what `above_target` says. noted: a notice of a trim says it too, so no warning need.
    """
    marks = load.history.marks
    found = {"floor": _floor(load, budget), "window": _doubtful_window(load, budget)}
    if found["window"] is None and above:
        found["above"] = Noticed("info", "The newest turn is larger than the context budget", above)
    fresh = {key: said for key, said in found.items() if said is not None and key not in marks.warned}
    marks = replace(marks, warned=marks.warned | fresh.keys(), trimmed=marks.trimmed or trimmed)
    hint = _slack_hint(marks, profile, trimmed=trimmed)
    given = tuple(said for key, said in fresh.items() if not (key == "above" and noted))
    return (given, marks) if hint is None else ((*given, hint), replace(marks, hinted=True))


def _floor(load: Load, budget: ContextBudget) -> Noticed | None:
    fixed = load.shape.calibrated(load.history.system.floor + load.fixed)
    if not 0 < budget.budget <= fixed:
        return None
    return Noticed(
        "warning",
        "System prompt and tools fill the context budget",
        f"They take about {fixed} tokens, the budget is {budget.budget}: only the newest turn is kept. "
        "Raise max_context_tokens or offer fewer tools.",
    )


def _doubtful_window(load: Load, budget: ContextBudget) -> Noticed | None:
    estimated = load.request_tokens()
    if budget.window_refuses or not overfull(estimated, budget):
        return None
    why = "were left of a longer prompt" if budget.window_inferred else "are assumed"
    return Noticed(
        "warning",
        "The request may be too large for the model",
        f"It needs about {estimated} tokens and the model's window is not known ({budget.window} {why}). "
        "Set context_window for this model.",
    )


def _slack_hint(marks: Marks, profile: Profile, *, trimmed: bool) -> Noticed | None:
    often = trimmed and marks.trims_in_a_row + 1 >= TRIMS_BEFORE_HINT
    if not often or marks.hinted or profile.trim_slack_ratio > 0:
        return None
    return Noticed(
        "info",
        "History is trimmed on every prompt",
        "Set trim_slack_ratio = 0.2 to trim more at once and less often; the provider's prompt cache "
        "then serves more of each request.",
    )
