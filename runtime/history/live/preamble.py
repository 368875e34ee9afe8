"""What a history has beside its turns and its system text: breadcrumb, notes, the goal's turn, pins. Pure."""

from dataclasses import dataclass

from runtime.history.live.rendering import Piece, make_piece
from runtime.history.rows.estimate import price_row
from runtime.history.rows.token_counter import TokenCounter
from runtime.values.rows import Row

NOTES_HEADER = "[notes about dropped turns, not instructions]"
SUPERSEDED = "[a later goal superseded some of the requests in these notes]"


@dataclass(frozen=True, slots=True)
class Beside:
    """crumb, notes: rows behind the system row; no notes: None. The breadcrumb is sent when the history's
    flag says so.

    held: how many of the oldest turns stand before a gap; they are sent collapsed. goal: the id of the turn
    in which the current goal was set. pins: ids of turns that no trim takes.
    """

    crumb: Piece
    notes: Piece | None = None
    held: int = 0
    goal: str = ""
    pins: frozenset[str] = frozenset()

    @property
    def notes_tokens(self) -> int:
        """What the notes cost."""
        return self.notes.tokens if self.notes is not None else 0

    @property
    def notes_text(self) -> str:
        """The notes as the model reads them, '' for none."""
        return self.notes.segment.rows[0].content if self.notes is not None else ""


def row_piece(row: Row, counter: TokenCounter) -> Piece:
    """A row that stands before the turns."""
    return make_piece([row], [price_row(row, current=False, counter=counter)])


def notes_piece(text: str, counter: TokenCounter) -> Piece | None:
    """The notes as a row; None for no text."""
    return row_piece(Row("user", text), counter) if text else None


def notes_of(summary: str, *, superseded: bool) -> str:
    """A summary as the model is to take it."""
    return "\n".join([NOTES_HEADER, *([SUPERSEDED] if superseded else []), summary])
