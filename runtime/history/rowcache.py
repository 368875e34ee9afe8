"""A small cache of plain rows per sender, for embedders that keep no session. Knows no token."""

from collections.abc import Sequence

from runtime.history.boundaries import is_tool_result_carrier
from runtime.history.pairs import repair
from runtime.history.trim import drop_oldest_whole_turn
from runtime.rows import Row

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
