"""Where turns begin, by looking at one row, and one system row made of many.

Knows no flag but the breadcrumb's, which the caller passes.
"""

from collections.abc import Callable, Iterable, Sequence

from runtime.values.rows import Row

TOOL_RESULTS_PREFIX = "[Tool results]"
FEEDBACK_PREFIXES = ("[Tool call parse error]", "[SOP:")
"""Texts the loop itself puts in as a user row: a cut point for trimming, no new turn for collapse."""

BREADCRUMB_TEXT = "[earlier turns omitted to fit the context window]"


def opens_turn(row: Row) -> bool:
    """True for the first row of a turn as trimming sees it (exact prefix, nothing stripped)."""
    return row.role == "user" and not row.content.startswith(TOOL_RESULTS_PREFIX)


def opens_retention_turn(row: Row) -> bool:
    """True for the first row of a turn as collapse and image pricing see it."""
    return opens_turn(row) and not row.content.startswith(FEEDBACK_PREFIXES)


def is_tool_result_carrier(row: Row) -> bool:
    """True for a row that carries tool results, native or in text."""
    if row.role == "tool":
        return True
    return row.role == "user" and row.content.lstrip().startswith(TOOL_RESULTS_PREFIX)


def is_breadcrumb_text(row: Row) -> bool:
    """True when the row reads like the breadcrumb. Only the owner's flag makes it one."""
    return row.role == "user" and row.content == BREADCRUMB_TEXT


def leading_system_count(rows: Sequence[Row]) -> int:
    """How many system rows stand before anything else."""
    for index, row in enumerate(rows):
        if row.role != "system":
            return index
    return len(rows)


def prefix_length(rows: Sequence[Row], crumb_present: bool) -> int:
    """Rows that no trim touches: the leading system rows and the flagged breadcrumb."""
    count = leading_system_count(rows)
    if crumb_present and count < len(rows) and is_breadcrumb_text(rows[count]):
        return count + 1
    return count


def boundaries(rows: Sequence[Row], start: int, opens: Callable[[Row], bool] = opens_turn) -> list[int]:
    """Indexes from `start` on at which a turn begins."""
    return [index for index in range(start, len(rows)) if opens(rows[index])]


def join_system(texts: Iterable[str]) -> str:
    """All texts that are not empty, in order, with a blank line between; '' for none."""
    return "\n\n".join(text for text in texts if text)


def normalize_system_messages(rows: Sequence[Row]) -> list[Row]:
    """The rows with all system text in one row at index 0, or without any when all of it is empty."""
    text = join_system(row.content for row in rows if row.role == "system")
    rest = [row for row in rows if row.role != "system"]
    return [Row("system", text), *rest] if text else rest
