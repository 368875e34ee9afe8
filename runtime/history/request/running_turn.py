"""When nothing else can go and the running turn still does not fit: its oldest results become lines."""

from dataclasses import dataclass, replace

from runtime.history.live.turn import Turn, rounds_to_cut
from runtime.history.request.budget import CAPACITY_MARGIN, ContextBudget, output_reserve
from runtime.history.request.meter import Load
from runtime.history.rows.notice import Reason, Strategy, TrimNotice
from runtime.values.events import TrimTokens
from runtime.values.profiles import Profile, Route


@dataclass(frozen=True, slots=True)
class ShortenedTurn:
    """The load afterwards, and the notice if more results were cut than before."""

    load: Load
    notice: TrimNotice | None = None


def shorten_running_turn(
    load: Load, profile: Profile, route: Route, budget: ContextBudget, ceiling: int | None
) -> ShortenedTurn:
    """Cut results of the newest turn's oldest rounds when the profile says so and nothing else can go.

    ceiling: cap on the messages, raw tokens, after a refusal; without one only a known window counts.
    """
    history = load.history
    turn = history.shown
    full = budget.window - CAPACITY_MARGIN
    too_large = budget.window_known and load.request_tokens() > full
    refused = ceiling is not None and load.messages > ceiling
    # A turn that is still there behind a trim is pinned, or so small that its breadcrumb would weigh more.
    alone = history.turn_count == 1 or not history.beside.pins
    may = profile.running_turn_overflow == "shorten" and alone
    if turn is None or not may or not (too_large or refused):
        return ShortenedTurn(load)
    room = min(budget.window - output_reserve(budget.window, route), full)

    def enough(saved: int) -> bool:
        messages = load.messages - saved
        fits = not budget.window_known or load.request_tokens(messages) <= room
        return fits and (ceiling is None or messages <= ceiling)

    rows = turn.repaired.rows
    done = history.marks.rounds_cut
    rounds = rounds_to_cut(rows, turn.prices_of(rows), done, turn.price, enough)
    return _cut(load, turn, rounds, budget)


def _cut(load: Load, turn: Turn, rounds: int, budget: ContextBudget) -> ShortenedTurn:
    history = load.history
    done = history.marks.rounds_cut
    more = turn.shortened_results(rounds) - turn.shortened_results(done)
    before = turn.shortened(done).tokens
    after = turn.shortened(rounds).tokens
    if more <= 0 or after >= before:
        return ShortenedTurn(load)
    history.marks = replace(history.marks, rounds_cut=rounds)
    left = replace(load, messages=load.messages - before + after)
    source = load.shape.source
    tokens = TrimTokens(budget.window, load.request_tokens(), left.request_tokens(), source, source)
    notice = TrimNotice(
        dropped_messages=more,
        dropped_turns=0,
        kept_turns=history.turn_count,
        reason=Reason.SHORTENED.value,
        strategy=Strategy.SHORTEN.value,
        tokens=tokens,
    )
    return ShortenedTurn(left, notice)
