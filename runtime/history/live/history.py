"""A session's live history: its turns, what stands beside them, and running sums. Knows no limit."""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace

from runtime.history.live.collapsed_turns import Collapsed, Log
from runtime.history.live.preamble import Beside, row_piece
from runtime.history.live.rendering import Piece
from runtime.history.live.turn import Shared, Turn
from runtime.history.rows.boundaries import TOOL_RESULTS_PREFIX, join_system
from runtime.history.rows.notice import make_breadcrumb
from runtime.history.rows.pairs import CallIds
from runtime.history.rows.token_counter import HEURISTIC, TokenCounter
from runtime.history.rows.tool_rounds import LoopView
from runtime.values.rows import Row


@dataclass(frozen=True, slots=True)
class SystemPart:
    """System text: the leading rows and the late ones. `piece` is the one row that is sent, if any."""

    leading: tuple[str, ...]
    late: tuple[str, ...]
    piece: Piece | None
    floor: int
    """Tokens of the rows as they were given, one by one."""


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over the turns behind the current one: recorded rows, entries, tokens of their whole faces."""

    rows: int = 0
    entries: int = 0
    tokens: int = 0

    def plus(self, turn: Turn, sign: int = 1) -> "Sums":
        """With one more turn, or one less."""
        return Sums(
            self.rows + sign * len(turn.rows),
            self.entries + sign * entry_count(turn.rows),
            self.tokens + sign * turn.whole().tokens,
        )


@dataclass(frozen=True, slots=True)
class Marks:
    """What the running turn has been told and done already, so that nothing is said twice.

    rounds_cut: tool rounds of the running turn whose results are shortened. trims_in_a_row: prompts
    before this one, without a gap, on which a trim fired. view: what the running turn's loop leaves out.
    """

    warned: frozenset[str] = frozenset()
    hinted: bool = False
    trimmed: bool = False
    trims_in_a_row: int = 0
    rounds_cut: int = 0
    view: LoopView | None = None

    def for_next_turn(self) -> "Marks":
        """The marks a new prompt starts with."""
        return Marks(hinted=self.hinted, trims_in_a_row=self.trims_in_a_row + 1 if self.trimmed else 0)


def entry_count(rows: Sequence[Row]) -> int:
    """How many structured entries the rows are."""
    results = [row.role == "tool" for row in rows]
    return sum(1 for index, result in enumerate(results) if not result or not index or not results[index - 1])


def _shared(counter: TokenCounter, taken_ids: Iterable[str]) -> Shared:
    ids = CallIds()
    first_use = {ids.give(name): -1 for name in taken_ids}
    return Shared(counter, first_use, {name: (-1, number) for name, number in ids.numbers.items()})


class History:
    """What may still be sent. Only its own methods change it; `compose` and trims return another one.

    The breadcrumb is a flag here (`crumb_present`), never a row. All parts are shared with histories
    made from this one and never changed in place.
    """

    def __init__(
        self,
        system: Iterable[str] = (),
        *,
        late_system: Iterable[str] = (),
        counter: TokenCounter = HEURISTIC,
        crumb_present: bool = False,
        taken_ids: Iterable[str] = (),
    ) -> None:
        """taken_ids: ids of calls in turns that are gone, so that reused ids keep their new names."""
        self.shared = _shared(counter, taken_ids)
        self.past = Log[Turn]()
        self.current: Turn | None = None
        self.running = False
        self.crumb_present = crumb_present
        self.beside = Beside(row_piece(make_breadcrumb(), counter))
        self.sums = Sums()
        self.collapse = Collapsed()
        self.marks = Marks()
        self.system = self._system(tuple(system), tuple(late_system))

    def _piece(self, row: Row) -> Piece:
        return row_piece(row, self.shared.counter)

    def _system(self, leading: tuple[str, ...], late: tuple[str, ...]) -> SystemPart:
        text = join_system((*leading, *late))
        floor = sum(self._piece(Row("system", part)).tokens for part in (*leading, *late))
        return SystemPart(leading, late, self._piece(Row("system", text)) if text else None, floor)

    def set_system(self, texts: Iterable[str]) -> None:
        """Replace the leading system rows. The same texts change nothing."""
        leading = tuple(texts)
        if leading != self.system.leading:
            self.system = self._system(leading, self.system.late)

    def add_system(self, text: str) -> None:
        """Add a late system entry; it stands beside the turns and survives every trim."""
        self.system = self._system(self.system.leading, (*self.system.late, text))

    def open_turn(self, turn_id: str, row: Row) -> str:
        """Begin a turn with an accepted prompt. Returns the id of the turn in which the row stands now.

        A prompt that starts with `[Tool results]` joins the turn before it, whose id it then is.
        """
        joins = row.role == "user" and row.content.startswith(TOOL_RESULTS_PREFIX)
        current = self.current
        self.running = True
        if current is not None and joins:
            self.current = current.extended([row])
            self.marks = replace(self.marks.for_next_turn(), rounds_cut=self.marks.rounds_cut)
            return current.turn_id
        seq = 0
        if current is not None:
            self._settle(current)
            seq = current.seq + 1
        self.current = Turn(turn_id, seq, (), (), self.shared).extended([row])
        self.marks = self.marks.for_next_turn()
        return turn_id

    def _settle(self, turn: Turn) -> None:
        settled = turn.settled()
        for call_id in settled.whole().call_ids:
            self.shared.first_use.setdefault(call_id, settled.seq)
        for name, number in settled.repaired.numbers.items():
            self.shared.numbers[name] = (settled.seq, number)
        self.past = self.past.pushed(settled)
        self.sums = self.sums.plus(settled)

    def append(self, rows: Iterable[Row]) -> None:
        """Add rows to the running turn, each priced once. System rows are held beside the turns.

        Raises ValueError when no turn is running.
        """
        if self.current is None or not self.running:
            raise ValueError("no turn is running: open one before appending rows")
        inside: list[Row] = []
        for row in rows:
            if row.role == "system":
                self.add_system(row.content)
            else:
                inside.append(row)
        self.current = self.current.extended(inside)

    def close_turn(self) -> None:
        """The running turn is complete; it stays the newest until the next prompt."""
        self.running = False

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All turns, oldest first."""
        return (*self.past, self.current) if self.current is not None else tuple(self.past)

    @property
    def shown(self) -> Turn | None:
        """The newest turn as a request shows it: while it runs, without the rounds that its loop leaves
        out.
        """
        view = self.marks.view
        if self.current is None or view is None or not self.running:
            return self.current
        return self.current.viewed(view)

    @property
    def turn_count(self) -> int:
        """How many turns there are."""
        return len(self.past) + (self.current is not None)

    @property
    def row_count(self) -> int:
        """Rows of all turns as recorded."""
        return self.sums.rows + (len(self.current.rows) if self.current is not None else 0)

    @property
    def first_kept_turn_id(self) -> str | None:
        """The id of the oldest turn, those aside that are held before a gap."""
        at = self.beside.held
        oldest = self.past[at] if len(self.past) > at else self.current
        return oldest.turn_id if oldest is not None else None

    @property
    def tokens(self) -> int:
        """Estimate of all that is kept, nothing collapsed: system row, breadcrumb, notes and turns."""
        system = self.system.piece.tokens if self.system.piece is not None else 0
        crumb = (self.beside.crumb.tokens if self.crumb_present else 0) + self.beside.notes_tokens
        current = self.shown.whole().tokens if self.shown is not None else 0
        return system + crumb + self.sums.tokens + current

    def without_oldest(self, count: int) -> "History":
        """Another history without that many of the oldest turns, marked with the breadcrumb.

        The newest turn is never taken. Costs the turns dropped, whatever is kept.
        """
        count = min(max(count, 0), self.turn_count - 1)
        other = copy(self)
        if count <= 0:
            return other
        for index in range(count):
            other.sums = other.sums.plus(self.past[index], -1)
        other.collapse = self.collapse.dropped(self.past, count)
        other.past = self.past.dropped(count)
        other.crumb_present = True
        other.beside = replace(self.beside, held=max(self.beside.held - count, 0))
        return other


def restore_history(
    turns: Iterable[tuple[str, Sequence[Row]]],
    *,
    system: Iterable[str] = (),
    late_system: Iterable[str] = (),
    counter: TokenCounter = HEURISTIC,
    crumb_present: bool = False,
    taken_ids: Iterable[str] = (),
) -> History:
    """A history from stored turns (id, rows), oldest kept one first; none of them is running.

    taken_ids: ids of calls in the turns before them, in order.
    """
    history = History(
        system, late_system=late_system, counter=counter, crumb_present=crumb_present, taken_ids=taken_ids
    )
    for turn_id, rows in turns:
        add_turn(history, turn_id, rows)
    return history


def add_turn(history: History, turn_id: str, rows: Sequence[Row]) -> None:
    """A stored turn at the history's end, complete."""
    for row in rows:
        if row.role == "system":
            history.add_system(row.content)
    inside = [row for row in rows if row.role != "system"]
    if inside:
        history.open_turn(turn_id, inside[0])
        history.append(inside[1:])
        history.close_turn()
