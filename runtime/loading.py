"""Brings a stored session back: its history from the first kept turn on, and its whole visible transcript.

Knows no protocol and changes nothing in the store, unless limits have shrunk since and turns must go.
"""

from contextlib import aclosing

from runtime.conversation import Conversation
from runtime.errors import StoreError
from runtime.history.turns import restore_history
from runtime.ids import new_id
from runtime.keeper import system_rows
from runtime.ports import (
    Store,
)
from runtime.record import TurnRecord, read_turns
from runtime.restore import turn_events, turn_rows
from runtime.rows import Row
from runtime.steps import Recorder
from schemas.transcript import SessionState


def read_state(text: str) -> SessionState:
    """A session's stored cut. Raises StoreError when it cannot be read."""
    try:
        return SessionState.model_validate_json(text or "{}")
    except ValueError:
        raise StoreError("The stored state of this session cannot be read.") from None


async def kept_turns(store: Store, session_id: str, state: SessionState) -> list[tuple[str, list[Row]]]:
    """(turn id, rows) of each turn that the model still gets, oldest first."""
    after = 0
    if state.first_turn_id:
        position = await store.position(session_id, f"turn:{state.first_turn_id}:prompt")
        after = (position or 1) - 1
    kept = []
    async with aclosing(read_turns(store, session_id, after=after)) as turns:
        async for turn in turns:
            if rows := turn_rows(turn):
                kept.append((turn.turn_id, rows))
    return kept


async def restore(talk: Conversation) -> None:
    """Fill a conversation's history from the store. What no longer fits its limits goes, and is told."""
    keeper = talk.keeper
    keeper.history = restore_history(
        await kept_turns(talk.store, talk.session_id, keeper.state),
        system=system_rows(keeper.setup),
        counter=keeper.setup.counter,
        crumb_present=keeper.state.history_has_trim_breadcrumb,
    )
    keeper.composed = keeper.fitted(check_capacity=False)
    recorder = Recorder(talk.store, talk.session_id, f"restore-{new_id()}")
    for notice in keeper.composed.trims:
        await keeper.shorten(keeper.composed.history, notice, recorder, 0)


async def replay(talk: Conversation) -> None:
    """Show everything the person saw, in order. Memory does not grow with the session."""
    async with aclosing(read_turns(talk.store, talk.session_id)) as turns:
        async for turn in turns:
            await show(talk, turn)


async def show(talk: Conversation, turn: TurnRecord) -> None:
    """One turn's events. The first turn that the model still gets says how many before it are gone."""
    first = talk.keeper.state.dropped_turns and turn.turn_id == talk.keeper.state.first_turn_id
    dropped = talk.keeper.state.dropped_turns if first else 0
    for event in turn_events(turn, restored_dropped_turns=dropped):
        await talk.emit(event)
