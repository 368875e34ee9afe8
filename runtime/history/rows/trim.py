"""Trims of plain rows, whole turns from the oldest on: by size, by count, after a reply, after an overflow.

With a small cache of rows per sender, for embedders that keep no session. Sends nothing, reads no error and
knows no live history.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.history.rows.boundaries import boundaries, is_tool_result_carrier, prefix_length
from runtime.history.rows.estimate import current_turn_start, estimate_history_tokens, price_rows
from runtime.history.rows.notice import insert_breadcrumb
from runtime.history.rows.pairs import repair
from runtime.history.rows.token_counter import HEURISTIC, TokenCounter
from runtime.values.rows import Row


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


def scaled_target(budget: int, reported: int, measured: int, schema_tokens: int) -> int:
    """The provider's budget on our scale, for messages alone, at least 1."""
    return max(budget * measured // reported - schema_tokens, 1)


def on_provider_scale(tokens: int, reported: int, measured: int) -> int:
    """Our tokens on the provider's scale, rounded half up."""
    return (2 * tokens * reported + measured) // (2 * measured)


def trim_to_reported_usage(
    rows: Sequence[Row],
    budget_tokens: int,
    *,
    reported_input_tokens: int,
    measured_estimate: int,
    tool_schema_tokens: int = 0,
    crumb_present: bool = False,
    counter: TokenCounter = HEURISTIC,
) -> TrimResult:
    """Drop the oldest turns when the provider counted more than the budget.

    measured_estimate: our uncalibrated estimate of the request it counted, schemas included. Both
    token figures of the result are on the provider's scale.
    """
    plan = layout(rows, crumb_present)
    within = reported_input_tokens <= budget_tokens
    if budget_tokens == 0 or measured_estimate == 0 or within or len(plan.starts) < 2:
        return plan.untouched(reported_input_tokens)
    target = scaled_target(budget_tokens, reported_input_tokens, measured_estimate, tool_schema_tokens)
    dropped, kept = fitting_cut(plan, price_rows(rows, counter), target, counter)
    after = on_provider_scale(kept + tool_schema_tokens, reported_input_tokens, measured_estimate)
    return plan.cut(dropped, reported_input_tokens, after)


@dataclass(frozen=True, slots=True)
class RowRecovery:
    """recovered: at least one turn was dropped. The breadcrumb is in `rows` and in tokens_after."""

    recovered: bool
    target_tokens: int
    rows: Sequence[Row]
    crumb_present: bool
    dropped_messages: int
    dropped_turns: int
    kept_turns: int
    tokens_before: int
    tokens_after: int


def recovery_target(tokens: int, limit: int | None = None) -> int:
    """What to aim at after a refusal: two thirds of what was sent, or the limit that was stated."""
    target = 2 * tokens // 3
    return target if limit is None else min(target, limit)


def recover_from_overflow(
    rows: Sequence[Row],
    *,
    crumb_present: bool = False,
    stated_limit: int | None = None,
    counter: TokenCounter = HEURISTIC,
) -> RowRecovery:
    """Drop the oldest turns to two thirds (or the stated limit, tokens) and leave the breadcrumb."""
    before = estimate_history_tokens(rows, counter)
    target = recovery_target(before, stated_limit)
    trim = trim_to_recent_turns(rows, target, crumb_present=crumb_present, counter=counter)
    kept, crumb = trim.history, crumb_present
    if trim.trimmed:
        marked = insert_breadcrumb(kept, crumb_present)
        kept, crumb = marked.rows, marked.crumb_present
    return RowRecovery(
        recovered=trim.trimmed,
        target_tokens=target,
        rows=kept,
        crumb_present=crumb,
        dropped_messages=trim.dropped_messages,
        dropped_turns=trim.dropped_turns,
        kept_turns=trim.kept_turns,
        tokens_before=before,
        tokens_after=estimate_history_tokens(kept, counter),
    )


DEFAULT_ROWS = 50


class RowCache:
    """Keeps the newest rows of each sender, cut between turns; the newest turn always stays whole."""

    def __init__(self, max_rows: int = 0, *, keep_tool_context_turns: int = 2) -> None:
        self.max_rows = max_rows if max_rows > 0 else DEFAULT_ROWS
        self.keep_tool_context_turns = keep_tool_context_turns
        self._rows: dict[str, Sequence[Row]] = {}

    def append_turn(self, sender: str, rows: Sequence[Row]) -> None:
        """Add a finished turn. Without kept tool context its tool traffic is not stored."""
        if self.keep_tool_context_turns <= 0:
            spoken = [row for row in rows if row is rows[0] or not is_tool_result_carrier(row)]
            rows = repair(spoken).rows
        kept: Sequence[Row] = [*self._rows.get(sender, ()), *rows]
        while len(kept) > self.max_rows:
            result = drop_oldest_whole_turn(kept)
            if not result.trimmed:
                break
            kept = result.history
        self._rows[sender] = kept

    def rows(self, sender: str) -> list[Row]:
        """The sender's rows, oldest first."""
        return list(self._rows.get(sender, ()))

    def forget(self, sender: str) -> None:
        """Drop all that is kept of a sender."""
        self._rows.pop(sender, None)
