"""What is said when history leaves: the breadcrumb for the model, the notice for the client, the reasons."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from runtime.history.rows.boundaries import BREADCRUMB_TEXT as BREADCRUMB_TEXT
from runtime.history.rows.boundaries import is_breadcrumb_text, leading_system_count
from runtime.values.events import HistoryTrimmed, TrimTokens
from runtime.values.rows import Row


class Reason(StrEnum):
    """Every reason a notice can give; clients see the value."""

    TOKEN_BUDGET = "context token budget exceeded"
    TURN_LIMIT = "history turn limit exceeded"
    OVERFLOW = "context window overflow recovery"
    SHORTENED = "running turn shortened to fit"
    LOOP_TRIMMED = "loop context trimmed"
    LOOP_SUMMARIZED = "loop context summarized"
    USER = "trimmed by the user"


class Strategy(StrEnum):
    """How it was chosen what goes. A custom trimmer gives its own name instead."""

    RECENT = "recent"
    HEAD_TAIL = "head-tail"
    COUNT = "count"
    TOKEN_BUDGET = "token-budget"
    SUMMARIZE = "summarize"
    SHORTEN = "shorten"
    USER = "user"


@dataclass(frozen=True, slots=True)
class TrimNotice:
    """One trim, as the client will be told. The session adds its id and the meter.

    dropped_messages: rows as recorded (for a shortened running turn: results shortened), at least 1.
    kept_turns counts the running turn. tokens: None for a trim by the count limit alone. summary: what stands
    for it now.
    """

    dropped_messages: int
    dropped_turns: int
    kept_turns: int
    reason: str
    strategy: str
    tokens: TrimTokens | None = None
    note: str = ""
    summary: str = ""

    def event(self, trim_id: str, *, used: int = 0, size: int = 0) -> HistoryTrimmed:
        """The event to emit. trim_id: unique in the session; used and size: tokens."""
        return HistoryTrimmed(
            dropped_messages=self.dropped_messages,
            dropped_turns=self.dropped_turns,
            kept_turns=self.kept_turns,
            reason=self.reason,
            strategy=self.strategy,
            trim_id=trim_id,
            tokens=self.tokens,
            used=used,
            size=size,
            note=self.note,
            summary=self.summary,
        )


def with_note(notice: TrimNotice, note: str) -> TrimNotice:
    """The notice with one more sentence of its own, if any."""
    return replace(notice, note=" ".join(filter(None, (notice.note, note))))


def merged(first: TrimNotice | None, second: TrimNotice | None) -> TrimNotice | None:
    """One notice for two cuts of the same compose: sums of both, the rest from the later one."""
    if first is None or second is None:
        return second or first
    tokens = second.tokens
    if tokens is not None and first.tokens is not None:
        tokens = replace(tokens, before=first.tokens.before, before_source=first.tokens.before_source)
    both = replace(
        second,
        dropped_messages=first.dropped_messages + second.dropped_messages,
        dropped_turns=first.dropped_turns + second.dropped_turns,
        tokens=tokens,
        note=first.note,
    )
    return with_note(both, second.note)


def make_breadcrumb() -> Row:
    """The row that tells the model that earlier turns are not there."""
    return Row("user", BREADCRUMB_TEXT)


@dataclass(frozen=True, slots=True)
class Marked:
    """Rows and whether the breadcrumb among them is ours."""

    rows: Sequence[Row]
    crumb_present: bool


def insert_breadcrumb(rows: Sequence[Row], crumb_present: bool) -> Marked:
    """Put the breadcrumb after the leading system rows, unless the flag says it is there already."""
    if crumb_present:
        return Marked(rows, True)
    at = leading_system_count(rows)
    return Marked([*rows[:at], make_breadcrumb(), *rows[at:]], True)


def load_breadcrumb_flag(version: int, rows: Sequence[Row], flag: bool | None) -> bool:
    """The flag of a stored history. Version 1 had none: there, and only there, the text decides."""
    if version >= 2:
        return bool(flag)
    at = leading_system_count(rows)
    return at < len(rows) and is_breadcrumb_text(rows[at])
