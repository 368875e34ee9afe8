"""What of a turn goes into a request: rows in pieces whose wire bytes are made once. Knows no limit."""

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.history.rows.estimate import RowPrice
from runtime.history.rows.pairs import call_ids, pairs_ok
from runtime.values.model import Segment
from runtime.values.rows import Row


@dataclass(frozen=True, slots=True)
class Piece:
    """A segment of a request with its price, tokens, and its pictures."""

    segment: Segment
    tokens: int
    images: int


@dataclass(frozen=True, slots=True)
class Face:
    """A turn as one request shows it. `whole_pairs`: each call has its result, as it must."""

    pieces: tuple[Piece, ...]
    segments: tuple[Segment, ...]
    tokens: int
    images: int
    row_count: int
    call_ids: tuple[str, ...]
    whole_pairs: bool

    def rows(self) -> list[Row]:
        """The rows, in order."""
        return [row for segment in self.segments for row in segment.rows]


def make_piece(rows: Sequence[Row], prices: Sequence[RowPrice]) -> Piece:
    """One new segment for these rows."""
    return Piece(
        Segment(tuple(rows)),
        sum(price.tokens for price in prices),
        sum(price.images for price in prices),
    )


def build_face(rows: Sequence[Row], prices: Sequence[RowPrice], earlier: Sequence[Piece] = ()) -> Face:
    """A face of these rows that keeps every earlier segment whose rows are still there, front and back.

    Only what is new between them becomes a new segment, so nothing that was sent is encoded again.
    """
    front, start = _front(rows, prices, earlier)
    back, end = _back(rows, prices, earlier[len(front) :], start)
    middle = [make_piece(rows[start:end], prices[start:end])] if start < end else []
    pieces = (*front, *middle, *back)
    return Face(
        pieces,
        tuple(piece.segment for piece in pieces),
        sum(piece.tokens for piece in pieces),
        sum(piece.images for piece in pieces),
        len(rows),
        tuple(call_ids(rows)),
        pairs_ok(rows),
    )


def _front(
    rows: Sequence[Row], prices: Sequence[RowPrice], earlier: Sequence[Piece]
) -> tuple[list[Piece], int]:
    kept: list[Piece] = []
    start = 0
    for piece in earlier:
        end = start + len(piece.segment.rows)
        if tuple(rows[start:end]) != piece.segment.rows:
            break
        kept.append(_priced(piece, prices[start:end]))
        start = end
    return kept, start


def _back(
    rows: Sequence[Row], prices: Sequence[RowPrice], earlier: Sequence[Piece], start: int
) -> tuple[list[Piece], int]:
    kept: list[Piece] = []
    end = len(rows)
    for piece in reversed(earlier):
        begin = end - len(piece.segment.rows)
        if begin < start or tuple(rows[begin:end]) != piece.segment.rows:
            break
        kept.append(_priced(piece, prices[begin:end]))
        end = begin
    return kept[::-1], end


def _priced(piece: Piece, prices: Sequence[RowPrice]) -> Piece:
    # The same bytes can cost something else once their turn is no longer the newest.
    tokens = sum(price.tokens for price in prices)
    if tokens == piece.tokens:
        return piece
    return Piece(piece.segment, tokens, sum(price.images for price in prices))
