"""What to drop after a context overflow, for plain rows. Sends nothing and reads no error."""

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.history.counter import HEURISTIC, TokenCounter
from runtime.history.estimate import estimate_history_tokens
from runtime.history.notice import insert_breadcrumb
from runtime.history.trim import trim_to_recent_turns
from runtime.rows import Row


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
