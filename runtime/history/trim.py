"""Trims of plain provider-facing rows: whole turns from the oldest on. Inserts no breadcrumb."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.history.boundaries import boundaries, prefix_length
from runtime.history.counter import HEURISTIC, TokenCounter
from runtime.history.estimate import current_turn_start, estimate_history_tokens, price_rows
from runtime.rows import Row


@dataclass(frozen=True, slots=True)
class TrimResult:
    """What a trim left. Untrimmed: `history` is the very sequence that was given.

    dropped_messages: rows, the preamble included and the breadcrumb not. Token figures are None where
    a trim does not count them.
    """

    history: Sequence[Row]
    dropped_messages: int
    dropped_turns: int
    kept_turns: int
    tokens_before: int | None
    tokens_after: int | None
    trimmed: bool


@dataclass(frozen=True, slots=True)
class RowLayout:
    """A history cut at its turns: rows before `prefix` always stay, `starts` are where turns begin."""

    rows: Sequence[Row]
    prefix: int
    starts: tuple[int, ...]

    def kept(self, dropped_turns: int) -> list[Row]:
        """The rows that stay when that many of the oldest turns (and the preamble) go."""
        return [*self.rows[: self.prefix], *self.rows[self.starts[dropped_turns] :]]

    def untouched(self, tokens: int | None = None) -> TrimResult:
        """The result of no trim."""
        return TrimResult(self.rows, 0, 0, len(self.starts), tokens, tokens, False)

    def cut(self, dropped_turns: int, before: int | None = None, after: int | None = None) -> TrimResult:
        """The result of dropping that many turns, at least one."""
        return TrimResult(
            self.kept(dropped_turns),
            self.starts[dropped_turns] - self.prefix,
            dropped_turns,
            len(self.starts) - dropped_turns,
            before,
            after,
            True,
        )


def layout(rows: Sequence[Row], crumb_present: bool) -> RowLayout:
    """Where the turns of plain rows begin."""
    prefix = prefix_length(rows, crumb_present)
    return RowLayout(rows, prefix, tuple(boundaries(rows, prefix)))


def trim_to_recent_turns(
    rows: Sequence[Row],
    budget_tokens: int,
    *,
    crumb_present: bool = False,
    counter: TokenCounter = HEURISTIC,
) -> TrimResult:
    """Drop the oldest turns until the rest fits; 0 is off, the newest turn always stays."""
    plan = layout(rows, crumb_present)
    prices = price_rows(rows, counter)
    total = sum(prices)
    if budget_tokens == 0 or total <= budget_tokens or len(plan.starts) < 2:
        return plan.untouched(total)
    dropped, after = fitting_cut(plan, prices, budget_tokens, counter)
    return plan.cut(dropped, total, after)


def fitting_cut(
    plan: RowLayout, prices: Sequence[int], budget_tokens: int, counter: TokenCounter
) -> tuple[int, int]:
    """The fewest turns, at least one, whose going makes the rest fit, and the tokens of the rest.

    If nothing fits: all but the newest turn. Needs two turns.
    """
    after = _tokens_after(plan, prices, counter)
    last = len(plan.starts) - 1
    for dropped in range(1, last):
        if (tokens := after(dropped)) <= budget_tokens:
            return dropped, tokens
    return last, after(last)


def _tokens_after(plan: RowLayout, prices: Sequence[int], counter: TokenCounter) -> Callable[[int], int]:
    current = current_turn_start(plan.rows)
    kept = sum(prices)
    suffix: list[int] = []
    before = plan.prefix
    for start in plan.starts:
        kept -= sum(prices[before:start])
        suffix.append(kept)
        before = start

    def after(dropped: int) -> int:
        # A cut inside the user turn leaves no opening row: its declared pictures are priced anew.
        if plan.starts[dropped] > current:
            return estimate_history_tokens(plan.kept(dropped), counter)
        return suffix[dropped]

    return after


def trim_to_recent_turn_count(
    rows: Sequence[Row], max_turns: int, *, crumb_present: bool = False
) -> TrimResult:
    """Keep the newest turns, at most `max_turns` and at least one."""
    plan = layout(rows, crumb_present)
    surplus = len(plan.starts) - max(max_turns, 1)
    return plan.cut(surplus) if surplus > 0 else plan.untouched()


def drop_oldest_whole_turn(rows: Sequence[Row], crumb_present: bool = False) -> TrimResult:
    """Drop one turn; the last one is refused (`trimmed` False)."""
    plan = layout(rows, crumb_present)
    return plan.cut(1) if len(plan.starts) > 1 else plan.untouched()
