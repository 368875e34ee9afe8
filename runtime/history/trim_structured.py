"""The count trim of the structured face. Knows no token."""

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.history.structured import Entry, entry_opens_turn, flagged_breadcrumb, is_system, row_count


@dataclass(frozen=True, slots=True)
class StructuredTrim:
    """What the trim left; dropped_messages counts provider-facing rows, never system entries."""

    history: Sequence[Entry]
    dropped_messages: int
    dropped_turns: int
    kept_turns: int
    trimmed: bool


def trim_conversation_to_recent_turns(
    entries: Sequence[Entry], max_turns: int, *, crumb_present: bool = False
) -> StructuredTrim:
    """Keep the newest turns, at most `max_turns` and at least one.

    When something goes, all system entries are gathered in front and the flagged breadcrumb is left
    out, for the caller to put back behind them; otherwise nothing moves.
    """
    crumb = flagged_breadcrumb(entries, crumb_present)
    starts = [index for index, entry in enumerate(entries) if index != crumb and entry_opens_turn(entry)]
    surplus = len(starts) - max(max_turns, 1)
    if surplus <= 0:
        return StructuredTrim(entries, 0, 0, len(starts), False)
    cut = starts[surplus]
    dropped = sum(
        row_count(entry)
        for index, entry in enumerate(entries[:cut])
        if index != crumb and not is_system(entry)
    )
    kept = [entry for entry in entries if is_system(entry)]
    kept += [entry for entry in entries[cut:] if not is_system(entry)]
    return StructuredTrim(kept, dropped, surplus, len(starts) - surplus, True)
