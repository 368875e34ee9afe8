"""Trims of a live history outside a call: after the reply, by the user's wish, and for another model.

Knows no provider and tells nobody.
"""

from copy import copy
from dataclasses import dataclass, replace

from runtime.history.live.collapsed_turns import Collapsed, Log
from runtime.history.live.history import History, Sums
from runtime.history.live.preamble import notes_piece
from runtime.history.live.without_parts import may_go, without
from runtime.history.request.budget import slack_target
from runtime.history.request.compose import Composed
from runtime.history.request.limits import above_text, whole_turn_notice
from runtime.history.request.meter import weigh
from runtime.history.rows.notice import Reason, Strategy, TrimNotice
from runtime.history.rows.token_counter import TokenCounter
from runtime.history.rows.trim import on_provider_scale, scaled_target
from runtime.values.events import TrimTokens
from runtime.values.profiles import Profile

BEFORE_ALL = -1
"""The place of turns that no history holds any more."""


def trim_after_reply(
    composed: Composed, history: History, reported_input_tokens: int, profile: Profile
) -> tuple[History, TrimNotice | None]:
    """Trim for the next turn when the provider counted more than the budget for the last request.

    composed: that request. history: the live one, its final reply appended; it is left as it is. Where notes
    are to stand for what goes, nothing is trimmed now: there is no time to have them written.
    """
    if profile.dropped_turns == "summarize":
        return history, None
    budget, measured = composed.budget.budget, composed.raw_tokens
    reported = reported_input_tokens
    if budget == 0 or measured == 0 or reported <= budget or history.turn_count < 2:
        return history, None
    load = weigh(history, composed.shape, profile.keep_tool_context_turns)
    aim = slack_target(budget, profile.trim_slack_ratio)
    target = scaled_target(aim, reported, measured, load.fixed)
    dropped = load.fewest_to_drop(may_go(history, profile), lambda messages: messages <= target)
    if not dropped:
        return history, None
    left = load.without(dropped)
    left.history.marks = replace(history.marks, trimmed=True)
    after = on_provider_scale(left.messages + load.fixed, reported, measured)
    now = on_provider_scale(load.messages + load.fixed, reported, measured)
    # The reply itself was not in the request: with it the history may be larger than what was counted.
    tokens = (
        TrimTokens(budget, reported, after, "provider", "calibrated")
        if after <= reported
        else TrimTokens(budget, now, after, "calibrated", "calibrated")
    )
    strategy = Strategy.HEAD_TAIL if profile.retention == "head-tail" else Strategy.RECENT
    note = above_text(after, budget, alone=left.history.turn_count == 1) if after > budget else ""
    notice = whole_turn_notice(history, left.history, Reason.TOKEN_BUDGET, tokens, note, strategy)
    return left.history, notice


def trim_by_user(history: History, keep_turns: int) -> tuple[History, TrimNotice | None]:
    """Keep only the newest turns, at least one, because the user said so."""
    surplus = history.turn_count - max(keep_turns, 1)
    if surplus <= 0:
        return history, None
    left = history.without_oldest(surplus)
    notice = whole_turn_notice(history, left, Reason.USER)
    return left, replace(notice, strategy=Strategy.USER.value)


def clear_by_user(history: History) -> tuple[History, TrimNotice | None]:
    """Keep no turn at all, because the user said so. None: there is none."""
    if not history.turn_count:
        return history, None
    left = emptied(history)
    return left, replace(whole_turn_notice(history, left, Reason.USER), strategy=Strategy.USER.value)


def emptied(history: History) -> History:
    """The history with all turns gone. Ids of their calls stay taken; leaves `history` as it is."""
    left, shared = copy(history), history.shared
    ids, numbers = dict(shared.first_use), {name: number for name, (_, number) in shared.numbers.items()}
    if history.current is not None:
        settled = history.current.settled()
        ids |= dict.fromkeys(settled.whole().call_ids, BEFORE_ALL)
        numbers |= settled.repaired.numbers
    left.shared = replace(
        shared,
        first_use=dict.fromkeys(ids, BEFORE_ALL),
        numbers={name: (BEFORE_ALL, number) for name, number in numbers.items()},
    )
    left.past, left.current, left.sums, left.collapse = Log(), None, Sums(), Collapsed()
    left.crumb_present = True
    left.beside = replace(history.beside, held=0, notes=None)
    return left


def without_newest(history: History, earlier: History) -> History:
    """The history as if its newest turn, or what joined it, had never been; what was trimmed stays gone.

    earlier: as it was before that. Both are left as they are.
    """
    newest = history.current
    kept = {turn.seq for turn in history.turns}
    turns = enumerate(earlier.turns)
    gone = [at for at, turn in turns if newest and turn.seq < newest.seq and turn.seq not in kept]
    if gone and len(gone) == earlier.turn_count:
        left = emptied(earlier)
    else:
        left = without(earlier, gone) if gone else copy(earlier)
    left.beside = replace(history.beside, held=left.beside.held)
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


def moved(history: History, counter: TokenCounter) -> History:
    """The same turns for another model, also while one runs: priced by its counter, and without reasoning
    that a provider wants back, since no other one takes it. Leaves `history` as it is; costs all of it.

    Bytes of segments that stay the same are not made again.
    """
    system = history.system
    other = History(
        system.leading, late_system=system.late, counter=counter, crumb_present=history.crumb_present
    )
    other.shared = replace(history.shared, counter=counter)
    other.running, other.marks = history.running, history.marks
    beside, notes = history.beside, notes_piece(history.beside.notes_text, counter)
    other.beside = replace(beside, crumb=other.beside.crumb, notes=notes)
    for turn in history.past:
        priced = turn.moved(other.shared)
        other.past, other.sums = other.past.pushed(priced), other.sums.plus(priced)
    if history.current is not None:
        other.current = history.current.moved(other.shared)
    return other
