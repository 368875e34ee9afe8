"""One turn of a live history: rows as recorded, and what requests show of it, made once. Knows no limit.

A running turn can also be shown with the results of its oldest rounds cut to a line, for a request that must
fit.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from runtime.history.live.rendering import Face, Piece, build_face
from runtime.history.rows.boundaries import TOOL_RESULTS_PREFIX, is_tool_result_carrier
from runtime.history.rows.collapse import collapse_turn
from runtime.history.rows.estimate import RowPrice, price_row
from runtime.history.rows.pairs import CallIds, Repaired, repair
from runtime.history.rows.structured import Entry, entries_from_rows
from runtime.history.rows.token_counter import TokenCounter, utf8_length
from runtime.history.rows.tool_rounds import LoopView, viewed_rows
from runtime.values.rows import Row


def short_row(row: Row) -> Row:
    """The row with its result replaced, id and pairing kept; the row itself if that saves no byte."""
    size = utf8_length(row.content)
    text = f"[result shortened to fit: {size} bytes; use recall_history]"
    if row.role != "tool":
        text = f"{TOOL_RESULTS_PREFIX}\n{text}"
    if utf8_length(text) >= size and not row.attachments:
        return row
    return replace(row, content=text, attachments=())


def completed_rounds(rows: Sequence[Row]) -> list[list[int]]:
    """Indexes of the result rows of each tool round, oldest first, without the newest round.

    The prompt and what the user wrote are never among them.
    """
    rounds: list[list[int]] = []
    fresh = True
    for index, row in enumerate(rows):
        if index and is_tool_result_carrier(row) and row.origin != "user":
            if fresh:
                rounds.append([])
            rounds[-1].append(index)
            fresh = False
        elif row.role == "assistant":
            fresh = True
    return rounds[:-1]


@dataclass(frozen=True, slots=True)
class Shortened:
    """Rows with the results of the oldest `rounds` cut; `results` says how many rows that changed."""

    rows: tuple[Row, ...]
    rounds: int
    results: int


def shorten(rows: Sequence[Row], rounds: int) -> Shortened:
    """Cut the results of the oldest `rounds` completed rounds (fewer, if there are not as many)."""
    chosen = completed_rounds(rows)[:rounds]
    out = list(rows)
    results = 0
    for index in (index for one in chosen for index in one):
        out[index] = short_row(rows[index])
        results += out[index] is not rows[index]
    return Shortened(tuple(out), len(chosen), results)


def rounds_to_cut(
    rows: Sequence[Row],
    prices: Sequence[RowPrice],
    done: int,
    price: Callable[[Row], RowPrice],
    enough: Callable[[int], bool],
) -> int:
    """How many of the oldest rounds must be cut, at least the `done` ones.

    enough: takes the tokens saved beyond what `done` saves already.
    """
    saved = 0
    rounds = completed_rounds(rows)
    for number in range(done, len(rounds)):
        for index in rounds[number]:
            short = short_row(rows[index])
            if short is not rows[index]:
                saved += prices[index].tokens - price(short).tokens
        if enough(saved):
            return number + 1
    return max(done, len(rounds))


@dataclass(frozen=True, slots=True)
class Shared:
    """What all turns of a history use: the counter, and which call ids were sent before.

    first_use: the turn in which an id was used first. numbers: for an id, the turn that was given names
    of it last, and the number after theirs (see CallIds).
    """

    counter: TokenCounter
    first_use: dict[str, int]
    numbers: dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _Whole:
    repaired: Repaired
    face: Face


@dataclass(frozen=True, slots=True)
class _Shortened:
    cut: Shortened
    face: Face


@dataclass(slots=True)
class _Kept:
    """Faces of a turn once they are made. earlier, view_face: of the turn whose place it took."""

    whole: _Whole | None = None
    earlier: Face | None = None
    short: _Shortened | None = None
    collapsed: tuple[frozenset[str], Face] | None = None
    viewed: "tuple[LoopView, Turn] | None" = None
    view_face: Face | None = None


class Turn:
    """Never changes: `extended` and `settled` give the turn that takes its place.

    rows: as recorded. prices: of those rows, tokens, same order. Faces are kept once made.
    """

    __slots__ = (
        "_kept",
        "current",
        "prices",
        "rows",
        "seq",
        "shared",
        "turn_id",
    )

    def __init__(
        self,
        turn_id: str,
        seq: int,
        rows: tuple[Row, ...],
        prices: tuple[RowPrice, ...],
        shared: Shared,
        *,
        current: bool = True,
    ) -> None:
        self.turn_id = turn_id
        self.seq = seq
        self.rows = rows
        self.prices = prices
        self.shared = shared
        self.current = current
        self._kept = _Kept()

    def extended(self, rows: Iterable[Row]) -> "Turn":
        """The running turn with more rows; only these are priced."""
        added = tuple(rows)
        prices = tuple(price_row(row, current=True, counter=self.shared.counter) for row in added)
        return self._successor(self.rows + added, self.prices + prices, current=True)

    def settled(self) -> "Turn":
        """The turn once a newer one has begun: pictures and reasoning are no longer sent, nor priced."""
        prices = tuple(map(self._settled_price, self.rows, self.prices))
        if prices == self.prices and not any(map(_fades, self.rows)):
            return self
        return self._successor(self.rows, prices, current=False)

    def moved(self, shared: Shared) -> "Turn":
        """The turn for another model: priced by its counter, without reasoning that is not its own."""
        rows = tuple(replace(row, reasoning=None) if row.reasoning else row for row in self.rows)
        prices = tuple(price_row(row, current=self.current, counter=shared.counter) for row in rows)
        turn = Turn(self.turn_id, self.seq, rows, prices, shared, current=self.current)
        turn._kept.earlier = self._kept.whole.face if self._kept.whole else self._kept.earlier
        return turn

    def _settled_price(self, row: Row, price: RowPrice) -> RowPrice:
        # Only a carrier that was priced with pictures, or declares some, can cost something else now.
        if _fades(row) or (price.images and (row.role == "tool" or not row.images)):
            return price_row(row, current=False, counter=self.shared.counter)
        return price

    def _successor(self, rows: tuple[Row, ...], prices: tuple[RowPrice, ...], *, current: bool) -> "Turn":
        turn = Turn(self.turn_id, self.seq, rows, prices, self.shared, current=current)
        turn._kept.earlier = self._kept.whole.face if self._kept.whole else self._kept.earlier
        turn._kept.short = self._kept.short
        turn._kept.view_face = self._kept.viewed[1].whole() if self._kept.viewed else self._kept.view_face
        return turn

    def viewed(self, view: LoopView) -> "Turn":
        """The turn as requests show it while its loop leaves rounds out."""
        if self._kept.viewed is None or self._kept.viewed[0] != view:
            rows = tuple(viewed_rows(self.repaired.rows, view))
            turn = Turn(self.turn_id, self.seq, rows, tuple(self.prices_of(rows)), self.shared)
            turn._kept.earlier = self._kept.view_face or self.whole()
            self._kept.viewed = view, turn
        return self._kept.viewed[1]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The structured face."""
        return tuple(entries_from_rows(self.rows))

    def whole(self) -> Face:
        """All of it."""
        return self._made().face

    @property
    def repaired(self) -> Repaired:
        """The rows fit for a request: swept, with call ids unique since the history began."""
        return self._made().repaired

    def _made(self) -> _Whole:
        if self._kept.whole is None:
            rows, first = self.rows, self.shared.first_use
            if not self.current and any(map(_fades, rows)):
                rows = tuple(
                    replace(row, attachments=(), reasoning=None) if _fades(row) else row for row in rows
                )
            ids = CallIds(lambda name: first.get(name, self.seq) < self.seq, self._first_number)
            repaired = repair(rows, ids)
            earlier = self._kept.earlier.pieces if self._kept.earlier else ()
            self._kept.whole = _Whole(repaired, self._face(repaired.rows, earlier))
        return self._kept.whole

    def _first_number(self, name: str) -> int:
        # A turn may be looked at again after it was settled: what it was given then counts for others only.
        seq, number = self.shared.numbers.get(name, (self.seq, 2))
        return number if seq < self.seq else 2

    def collapsed(self, callable_tools: frozenset[str]) -> Face:
        """Without its tool traffic."""
        known = self._kept.collapsed
        if known is not None and known[0] == callable_tools:
            return known[1]
        face, rows = self.whole(), self.repaired.rows
        if rows and rows[0].role == "user":
            earlier = known[1] if known else face
            face = self._face(collapse_turn(rows, callable_tools), earlier.pieces)
        self._kept.collapsed = (callable_tools, face)
        return face

    def shortened(self, rounds: int) -> Face:
        """With the results of its oldest rounds cut to a line."""
        return self._shortened(rounds).face

    def shortened_results(self, rounds: int) -> int:
        """How many results `shortened(rounds)` cuts."""
        return self._shortened(rounds).cut.results if rounds else 0

    def _shortened(self, rounds: int) -> _Shortened:
        cut = shorten(self.repaired.rows, rounds)
        known = self._kept.short
        if known is None or known.cut.rows != cut.rows:
            earlier = known.face if known else self.whole()
            self._kept.short = known = _Shortened(cut, self._face(cut.rows, earlier.pieces))
        return known

    def _face(self, rows: Sequence[Row], earlier: Sequence[Piece]) -> Face:
        return build_face(rows, self.prices_of(rows), earlier)

    def prices_of(self, rows: Sequence[Row]) -> Sequence[RowPrice]:
        """Prices of rows of this turn; only rows that were changed for the request are priced anew."""
        if rows is self.rows or (len(rows) == len(self.rows) and all(map(_same, rows, self.rows))):
            return self.prices
        known: Mapping[int, RowPrice] = dict(zip(map(id, self.rows), self.prices, strict=True))
        return [known.get(id(row)) or self.price(row) for row in rows]

    def price(self, row: Row) -> RowPrice:
        """The price of one row in this turn."""
        return price_row(row, current=self.current, counter=self.shared.counter)


def with_rows(turn: Turn, rows: Sequence[Row]) -> Turn:
    """The turn with other rows in place of its own, those that are the same at their known prices."""
    made = tuple(rows)
    return turn._successor(made, tuple(turn.prices_of(made)), current=turn.current)


def _fades(row: Row) -> bool:
    """Whether the row carries something that is sent in the newest turn only."""
    return bool(row.attachments or row.reasoning)


def _same(left: Row, right: Row) -> bool:
    return left is right
