"""Trims of a live history outside a call: after the reply, and by the user's own wish."""

from dataclasses import dataclass, replace

from runtime.events import TrimTokens
from runtime.history.budget import slack_target
from runtime.history.collapsed import Collapsed
from runtime.history.compose import Composed
from runtime.history.limits import whole_turn_notice
from runtime.history.load import weigh
from runtime.history.log import Log
from runtime.history.notice import Reason, Strategy, TrimNotice
from runtime.history.reported import on_provider_scale, scaled_target
from runtime.history.turns import History, Sums
from runtime.profiles import Profile

BEFORE_ALL = -1
"""The place of turns that no history holds any more."""


def trim_after_reply(
    composed: Composed, history: History, reported_input_tokens: int, profile: Profile
) -> tuple[History, TrimNotice | None]:
    """Trim for the next turn when the provider counted more than the budget for the last request.

    composed: that request. history: the live one, its final reply appended; it is left as it is.
    """
    budget, measured = composed.budget.budget, composed.raw_tokens
    reported = reported_input_tokens
    if budget == 0 or measured == 0 or reported <= budget or history.turn_count < 2:
        return history, None
    load = weigh(history, composed.shape, profile.keep_tool_context_turns)
    aim = slack_target(budget, profile.trim_slack_ratio)
    target = scaled_target(aim, reported, measured, load.fixed)
    dropped, _ = load.fewest_to_drop(lambda messages: messages <= target)
    if not dropped:
        return history, None
    left = load.without_oldest(dropped)
    left.history.marks = replace(history.marks, trimmed=True)
    after = on_provider_scale(left.messages + load.fixed, reported, measured)
    now = on_provider_scale(load.messages + load.fixed, reported, measured)
    # The reply itself was not in the request: with it the history may be larger than what was counted.
    tokens = (
        TrimTokens(budget, reported, after, "provider", "calibrated")
        if after <= reported
        else TrimTokens(budget, now, after, "calibrated", "calibrated")
    )
    return left.history, whole_turn_notice(history, left.history, Reason.TOKEN_BUDGET, tokens)


def trim_by_user(history: History, keep_turns: int) -> tuple[History, TrimNotice | None]:
    """Keep only the newest turns, at least one, because the user said so."""
    surplus = history.turn_count - max(keep_turns, 1)
    if surplus <= 0:
        return history, None
    left = history.without_oldest(surplus)
    notice = whole_turn_notice(history, left, Reason.USER)
    return left, replace(notice, strategy=Strategy.USER.value)


def without_newest(history: History, earlier: History) -> History:
    """The history as if its newest turn, or what joined it, had never been; what was trimmed stays gone.

    earlier: as it was before that. Both are left as they are.
    """
    oldest = history.past[0] if len(history.past) else history.current
    gone = sum(1 for turn in earlier.turns if oldest is not None and turn.seq < oldest.seq)
    left = earlier.without_oldest(gone)
    if not gone or gone < earlier.turn_count:
        return left
    shared = earlier.shared
    ids = dict.fromkeys((*shared.first_use, *earlier.turns[-1].whole().call_ids), BEFORE_ALL)
    numbers = {name: (BEFORE_ALL, number) for name, (_, number) in shared.numbers.items()}
    left.shared = replace(shared, first_use=ids, numbers=numbers)
    left.past, left.current, left.sums, left.collapse = Log(), None, Sums(), Collapsed()
    left.crumb_present = True
    return left


@dataclass(frozen=True, slots=True)
class Mended:
    """What was broken in a history as recorded: rows that no request may show, calls taken out."""

    turns: int
    rows: int
    calls: int


def mended(history: History) -> Mended:
    """What the sweeps changed in the kept turns; all 0 for a whole history. Costs all turns."""
    broken = [turn.repaired for turn in history.turns if turn.repaired.rows != turn.rows]
    return Mended(
        sum(1 for one in broken if one.removed_rows or one.stripped_calls),
        sum(one.removed_rows for one in broken),
        sum(one.stripped_calls for one in broken),
    )
