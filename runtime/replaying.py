"""Replays a stored session: reads its records in order and has every provider call made again from them."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace

from runtime.history.turns import History
from runtime.loading import used_call_ids
from runtime.rebuilding import Surroundings, first_kept_entry, read_history
from runtime.record import TurnRecord, read_turns
from runtime.replay import Remade, Replay
from runtime.stored import Store
from schemas.transcript import ExpandStep, SessionState


@dataclass(frozen=True, slots=True)
class Replayed:
    """A call of the turn with that number, made again; or, without one, the turn itself, behind its calls.

    trims: how many there were for the turn. unrecorded: calls of the turn that could not be compared.
    """

    number: int
    turn_id: str
    call: Remade | None = None
    trims: int = 0
    unrecorded: int = 0


async def replay_session(store: Store, session_id: str) -> AsyncGenerator[Replayed, None]:
    """Every call of every turn, in order. Raises Difference at the first that is not what was recorded.

    Holds one turn and the history that was kept at that time. Close it (aclosing) when it is left early.
    """
    replay, number = Replay(), 0
    async with aclosing(read_turns(store, session_id)) as turns:
        async for turn in turns:
            number += turn.prompt is not None
            before = replay.unrecorded
            for call in replay.add(turn):
                yield Replayed(number, turn.turn_id, call)
            if turn.expand is not None:
                replay.bring_back(await as_expanded(store, session_id, turn, turn.expand, replay.history))
            if turn.prompt is not None:
                trims = len(turn.trims()) + len(turn.trims_after)
                yield Replayed(number, turn.turn_id, trims=trims, unrecorded=replay.unrecorded - before)


async def as_expanded(
    store: Store, session_id: str, at: TurnRecord, step: ExpandStep, history: History
) -> History:
    """The history with the turns that came back at that record."""
    state = SessionState(
        first_turn_id=step.first_turn_id,
        held=step.held,
        history_has_trim_breadcrumb=step.dropped_turns > 0,
        notes=history.beside.notes_text if step.dropped_turns else "",
    )
    first = await first_kept_entry(store, session_id, state)
    taken = await used_call_ids(store, session_id, first)
    around = Surroundings(history.system.leading, history.shared.counter, history.system.late, taken)
    made = await read_history(store, session_id, state, around, first=first, before=at.first_seq)
    made.beside = replace(made.beside, goal=history.beside.goal, pins=history.beside.pins)
    return made
