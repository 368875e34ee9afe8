"""A history without some of it: turns wherever they stand, rounds that a trimmer hid, refused pictures.

Costs what is taken out, not the rows of the rest. Pure; decides nothing.
"""

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass, replace

from runtime.history.live.collapsed_turns import Collapsed, Log
from runtime.history.live.drop_order import drop_order, head_turn
from runtime.history.live.goal import goal_index, pinned
from runtime.history.live.history import History
from runtime.history.live.turn import Turn, completed_rounds, with_rows
from runtime.history.rows.tool_rounds import LoopChange, LoopView, Round, changed_rows, numbers, tool_rounds
from runtime.values.profiles import Profile
from runtime.values.rows import Image, Row


def without(history: History, gone: Sequence[int]) -> History:
    """Another history without these turns, marked with the breadcrumb. The newest is never among them."""
    if list(gone) == list(range(len(gone))):
        return history.without_oldest(len(gone))
    lost, other = frozenset(gone), copy(history)
    past: Log[Turn] = Log()
    for index, turn in enumerate(history.past):
        if index in lost:
            other.sums = other.sums.plus(turn, -1)
        else:
            past = past.pushed(turn)
    other.past, other.collapse = past, Collapsed(history.collapse.callable_tools)
    other.crumb_present = True
    gap = max(lost)
    before_gap = max(history.beside.held, gap)
    other.beside = replace(history.beside, held=before_gap - sum(index < before_gap for index in lost))
    return other


def may_go(history: History, profile: Profile) -> Sequence[int]:
    """The turns that a trim may take, in its order."""
    return drop_order(history.turn_count, profile.retention, goal_index(history), pinned(history))


def head_of(history: History, profile: Profile) -> int | None:
    """The turn that head-tail retention keeps as the head, unless it is pinned."""
    head = head_turn(history.turn_count, profile.retention, goal_index(history))
    return None if head in pinned(history) else head


def reduced_to(history: History, first_turn_id: str, held: Collection[str]) -> History:
    """The history as a recorded cut left it: the turns from one on, and those before it that are held."""
    gone: list[int] = []
    for index, turn in enumerate(history.turns):
        if turn.turn_id == first_turn_id:
            return without(history, gone) if gone else copy(history)
        if turn.turn_id not in held:
            gone.append(index)
    return copy(history)


@dataclass(frozen=True, slots=True)
class Narrowed:
    """The history afterwards. Of what the last view still had: rows of rounds that went, results that got
    another text.
    """

    history: History
    dropped_rows: int
    overwritten: int


def narrowed(history: History, change: LoopChange) -> Narrowed:
    """Apply a pass to the running turn. Leaves `history` as it is. There must be a turn."""
    turn = history.current
    assert turn is not None
    before = history.marks.view or LoopView()
    rounds = tool_rounds(turn.repaired.rows)
    gone = frozenset(range(len(rounds))).difference(numbers(change.kept))
    fresh = gone - before.hidden
    texts = set(change.outputs).difference(before.outputs)
    other = copy(history)
    if change.persist:
        other.current = with_rows(turn, changed_rows(turn.rows, change))
        view = LoopView(folded=before.folded + len(gone))
    else:
        view = LoopView(gone, change.outputs, before.folded)
    other.marks = replace(history.marks, view=view if view != LoopView() else None)
    if history.marks.rounds_cut:
        # A text that a pass has just written is to be read: what must be cut is decided anew with it.
        other.marks = replace(other.marks, rounds_cut=0 if texts else _still_cut(history, other))
    return Narrowed(other, _rows_of(rounds, fresh), len(texts))


def _rows_of(rounds: Sequence[Round], chosen: frozenset[int]) -> int:
    return sum(len(rounds[number]) for number in chosen)


def _still_cut(before: History, after: History) -> int:
    """How many of the oldest rounds that are shown now were shortened before."""
    old, new = _shown(before), _shown(after)
    first = completed_rounds(old)[: before.marks.rounds_cut]
    cut = {old[at].tool_call_id or id(old[at]) for one in first for at in one}
    places = enumerate(completed_rounds(new), 1)
    return max(
        (n for n, one in places if any((new[at].tool_call_id or id(new[at])) in cut for at in one)), default=0
    )


def _shown(history: History) -> tuple[Row, ...]:
    return () if history.shown is None else history.shown.repaired.rows


LEFT_OUT = "[{what}, about {size} kB{name}: left out. {why}]"


def without_pictures(row: Row, why: str) -> Row:
    """The row with a line for each of its pictures. why: a sentence."""
    lines = [left_out(image, why) for image in row.images]
    return replace(row, content="\n".join(filter(None, [row.content, *lines])), images=()) if lines else row


def left_out(image: Image, why: str) -> str:
    """What is said of a picture that is not sent: its kind, size and name, and the reason."""
    size = max(len(image.data) * 3 // 4000, 1)
    name = f" ({image.uri})" if image.uri and not image.uri.startswith("data:") else ""
    return LEFT_OUT.format(what=image.mime_type or "image", size=size, name=name, why=why)


def refused_pictures(history: History) -> tuple[Image, ...]:
    """The pictures of the running turn's prompt."""
    rows = history.current.rows if history.current is not None and history.running else ()
    return next((row.images for row in reversed(rows) if row.images), ())


def blinded(history: History, why: str) -> History:
    """The history without those pictures; `history` is left as it is."""
    current = history.current
    if current is None:
        return history
    rows = list(current.rows)
    at = max((index for index, row in enumerate(rows) if row.images), default=None)
    if at is None:
        return history
    rows[at] = without_pictures(rows[at], why)
    other = copy(history)
    other.current = Turn(current.turn_id, current.seq, (), (), history.shared).extended(rows)
    return other
