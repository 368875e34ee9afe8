"""The trim after a reply, by the provider's own count of the request. Plain rows only."""

from collections.abc import Sequence

from runtime.history.counter import HEURISTIC, TokenCounter
from runtime.history.estimate import price_rows
from runtime.history.trim import TrimResult, fitting_cut, layout
from runtime.rows import Row


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
