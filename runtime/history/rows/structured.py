"""A history as entries of what was said, asked of tools and answered by them, and its trim by count.

Knows no token.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from runtime.history.rows.boundaries import BREADCRUMB_TEXT, TOOL_RESULTS_PREFIX
from runtime.values.rows import Attachment, Image, Row, ToolCall


@dataclass(frozen=True, slots=True)
class Chat:
    """Something said by the system, the user or the model (or put in by the loop as the user)."""

    role: Literal["system", "user", "assistant"]
    content: str
    images: tuple[Image, ...] = ()
    origin: Literal["user", "runtime"] | None = None


@dataclass(frozen=True, slots=True)
class AssistantToolCalls:
    """A reply that calls tools. `text` is None when it said nothing beside; `reasoning` when unknown."""

    text: str | None
    tool_calls: tuple[ToolCall, ...]
    reasoning: str | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """One tool's answer. `call_id` is None when the stored row had none."""

    call_id: str | None
    content: str
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolResults:
    """All answers of one round, in the order of their rows."""

    results: tuple[ToolResult, ...]


Entry = Chat | AssistantToolCalls | ToolResults


def entries_from_rows(rows: Iterable[Row]) -> list[Entry]:
    """The structured face of rows; neighbouring tool rows become one entry."""
    entries: list[Entry] = []
    for is_result, group in groupby(rows, key=lambda row: row.role == "tool"):
        if is_result:
            results = (ToolResult(row.tool_call_id, row.content, row.attachments) for row in group)
            entries.append(ToolResults(tuple(results)))
        else:
            entries.extend(map(_said, group))
    return entries


def _said(row: Row) -> Entry:
    if row.role == "assistant" and row.tool_calls:
        return AssistantToolCalls(row.content or None, row.tool_calls)
    if row.role == "tool":
        return ToolResults((ToolResult(row.tool_call_id, row.content, row.attachments),))
    return Chat(row.role, row.content, row.images, row.origin)


def rows_from_entries(entries: Iterable[Entry]) -> list[Row]:
    """The provider-facing rows of structured entries."""
    return [row for entry in entries for row in _rows(entry)]


def _rows(entry: Entry) -> Iterator[Row]:
    match entry:
        case Chat(role, content, images, origin):
            yield Row(role, content, images=images, origin=origin)
        case AssistantToolCalls(text, tool_calls):
            yield Row("assistant", text or "", tool_calls)
        case ToolResults(results):
            for result in results:
                yield Row(
                    "tool",
                    result.content,
                    tool_call_id=result.call_id,
                    attachments=result.attachments,
                )


def row_count(entry: Entry) -> int:
    """How many provider-facing rows the entry is."""
    return len(entry.results) if isinstance(entry, ToolResults) else 1


def is_system(entry: Entry) -> bool:
    """True for a system entry."""
    return isinstance(entry, Chat) and entry.role == "system"


def entry_opens_turn(entry: Entry) -> bool:
    """The turn rule of the rows, on this face."""
    return (
        isinstance(entry, Chat) and entry.role == "user" and not entry.content.startswith(TOOL_RESULTS_PREFIX)
    )


def flagged_breadcrumb(entries: Sequence[Entry], crumb_present: bool) -> int | None:
    """Index of the breadcrumb when the flag says that there is one."""
    if not crumb_present:
        return None
    for index, entry in enumerate(entries):
        if not is_system(entry):
            found = isinstance(entry, Chat) and entry.role == "user" and entry.content == BREADCRUMB_TEXT
            return index if found else None
    return None


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
