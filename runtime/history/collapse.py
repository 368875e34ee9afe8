"""Older turns without their tool traffic, for a request only. Changes no stored row."""

from collections.abc import Collection, Sequence
from itertools import pairwise

from runtime.history.boundaries import (
    boundaries,
    is_tool_result_carrier,
    opens_retention_turn,
    prefix_length,
)
from runtime.history.prompt_mode import prompt_mode_calls
from runtime.rows import Row

DEFAULT_KEEP_TURNS = 2


def summary_row(calls: int) -> Row:
    """The row that stands for an exchange that no reply closed."""
    return Row("assistant", f"[Tool exchange: {calls} tool call(s) — results collapsed]")


def calls_issued(row: Row, callable_tools: Collection[str]) -> int:
    """How many calls the row makes, native or in text; 0 unless it names a tool that can be run."""
    if row.role != "assistant":
        return 0
    names = [call.name for call in row.tool_calls] or [call.name for call in prompt_mode_calls(row.content)]
    return len(names) if any(name in callable_tools for name in names) else 0


def collapse_turn(rows: Sequence[Row], callable_tools: Collection[str]) -> list[Row]:
    """One older turn as its prompt, its system rows, and its closing reply or a summary row."""
    prompt, rest = rows[0], [row for row in rows[1:] if row.role != "system"]
    head = [prompt, *(row for row in rows[1:] if row.role == "system")]
    if not rest:
        return head
    last = rest[-1]
    if last.role == "assistant" and not calls_issued(last, callable_tools):
        return [*head, last]
    count = sum(calls_issued(row, callable_tools) for row in rest)
    count = count or sum(1 for row in rest if is_tool_result_carrier(row))
    return [*head, summary_row(max(count, 1))]


def collapse_tool_context(
    rows: Sequence[Row],
    keep_tool_context_turns: int = DEFAULT_KEEP_TURNS,
    callable_tools: Collection[str] = (),
    crumb_present: bool = False,
) -> list[Row]:
    """The request copy: the newest turn and `keep_tool_context_turns` before it whole, older ones short."""
    prefix = prefix_length(rows, crumb_present)
    starts = boundaries(rows, prefix, opens_retention_turn)
    older = max(len(starts) - 1 - max(keep_tool_context_turns, 0), 0)
    if not older:
        return list(rows)
    out = list(rows[: starts[0]])
    for start, end in pairwise(starts[: older + 1]):
        out += collapse_turn(rows[start:end], callable_tools)
    return out + list(rows[starts[older] :])
