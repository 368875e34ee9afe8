"""A history out of a store, as the session left it: from the oldest kept turn on. Knows no session that is
open.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from runtime.history.beside import notes_piece
from runtime.history.counter import TokenCounter
from runtime.history.dropping import without
from runtime.history.turns import History, add_turn
from runtime.record import TurnRecord, read_turns
from runtime.restore import JoinedTurn, join
from runtime.stored import Store
from schemas.session_state import SessionState


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a history has that is no turn. taken_ids: of calls before its oldest turn, in order."""

    system: Sequence[str]
    counter: TokenCounter
    late_system: Sequence[str] = ()
    taken_ids: Sequence[str] = ()


async def first_kept_entry(store: Store, session_id: str, state: SessionState) -> int:
    """The seq of the first entry of the oldest turn that the model still gets; 1 when it gets all."""
    oldest = next(iter(state.held), state.first_turn_id)
    return await entry_of(store, session_id, oldest)


async def entry_of(store: Store, session_id: str, turn_id: str) -> int:
    """The seq of a turn's first entry; 1 for no turn."""
    if not turn_id:
        return 1
    return await store.position(session_id, f"turn:{turn_id}:prompt") or 1


@dataclass(slots=True)
class NewestCut:
    """Of how many tool rounds the newest turn's results are shortened, by the records of all kept turns."""

    rounds: int = 0

    def add(self, turn: TurnRecord, turns: Sequence[JoinedTurn]) -> None:
        """Take in the next record. turns: as they are with it."""
        if turn.end is not None and turn.end.excluded:
            return  # what was shortened for a prompt that no model gets is whole again
        if turns and turns[-1][0] == turn.turn_id:
            self.rounds = 0
        if turn.aside.rounds_cut is not None:
            self.rounds = max(turn.aside.rounds_cut, 0)


async def joined_turns(
    store: Store, session_id: str, first: int, before: int | None = None, cut: NewestCut | None = None
) -> AsyncGenerator[JoinedTurn, None]:
    """Each turn from that entry on, oldest first, with what joined it. before: the entry behind the last."""
    cut = cut or NewestCut()
    pending: list[JoinedTurn] = []
    async with aclosing(read_turns(store, session_id, after=first - 1)) as turns:
        async for turn in turns:
            if before is not None and turn.first_seq >= before:
                break
            join(pending, turn)
            cut.add(turn, pending)
            while len(pending) > 1:
                yield pending.pop(0)
    for one in pending:
        yield one


async def read_history(
    store: Store,
    session_id: str,
    state: SessionState,
    around: Surroundings,
    *,
    first: int,
    before: int | None = None,
) -> History:
    """The kept turns behind that entry, the state's oldest one. Turns in a gap are read and let go again, so
    that ids which they used stay used.
    """
    history = History(
        around.system, late_system=around.late_system, counter=around.counter, taken_ids=around.taken_ids
    )
    in_gap, gone, cut = bool(state.held), False, NewestCut()
    async with aclosing(joined_turns(store, session_id, first, before, cut)) as turns:
        async for turn_id, rows in turns:
            in_gap = in_gap and turn_id != state.first_turn_id
            add_turn(history, turn_id, rows)
            if gone:
                history = without(history, (len(history.past) - 1,))
            gone = in_gap and turn_id not in state.held
    history.crumb_present = state.history_has_trim_breadcrumb
    history.beside = replace(history.beside, notes=notes_piece(state.notes, around.counter))
    history.marks = replace(history.marks, rounds_cut=cut.rounds)
    return history
