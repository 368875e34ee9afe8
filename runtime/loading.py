"""Brings a stored session back: its history from the first kept turn on, and its whole visible transcript.

Knows no protocol and changes nothing in the store, unless limits have shrunk since and turns must go.
"""

import logging
from contextlib import aclosing
from dataclasses import replace

from runtime.conversation import Conversation
from runtime.errors import StoreError
from runtime.events import Event, Noticed, ToolCallStarted
from runtime.history.live import mended
from runtime.history.turns import History, restore_history
from runtime.ids import new_id
from runtime.keeper import system_rows
from runtime.record import PAGE, TurnRecord, read_turns
from runtime.restore import turn_events, turn_rows
from runtime.rows import Row
from runtime.steps import Recorder
from runtime.stored import Store, StoredEntry
from schemas.transcript import ANY_STEP, CallRecord, ReplyStep, SessionState

log = logging.getLogger("wholeturn.loading")


def read_state(text: str) -> SessionState:
    """A session's stored cut. Raises StoreError when it cannot be read."""
    try:
        return SessionState.model_validate_json(text or "{}")
    except ValueError:
        raise StoreError("The stored state of this session cannot be read.") from None


async def first_kept_entry(store: Store, session_id: str, state: SessionState) -> int:
    """The seq of the first entry of the first turn that the model still gets; 1 when it gets all."""
    if not state.first_turn_id:
        return 1
    return await store.position(session_id, f"turn:{state.first_turn_id}:prompt") or 1


async def kept_turns(store: Store, session_id: str, first: int) -> list[tuple[str, list[Row]]]:
    """(turn id, rows) of each turn from that entry on, oldest first."""
    kept = []
    async with aclosing(read_turns(store, session_id, after=first - 1)) as turns:
        async for turn in turns:
            if rows := turn_rows(turn):
                kept.append((turn.turn_id, rows))
    return kept


async def used_call_ids(store: Store, session_id: str, before: int) -> list[str]:
    """The provider's ids of the calls before that entry, in order, repeated ones too."""
    used: list[str] = []
    after = 0
    while after < before - 1:
        page = await store.entries(session_id, after=after, limit=min(PAGE, before - 1 - after))
        if not page:
            break
        after = page[-1].seq
        used += (call.id for entry in page for call in native_calls(entry))
    return used


def native_calls(entry: StoredEntry) -> tuple[CallRecord, ...]:
    """The calls of a reply that the provider made in its own form; none if the entry is something else."""
    if entry.kind != "reply":
        return ()
    try:
        step = ANY_STEP.validate_json(entry.payload)
    except ValueError:
        return ()
    return step.calls if isinstance(step, ReplyStep) and not step.prompt_mode else ()


async def stored_history(talk: Conversation) -> History:
    """The history as the session left it, made from the store."""
    state, setup = talk.keeper.state, talk.setup
    first = await first_kept_entry(talk.store, talk.session_id, state)
    return restore_history(
        await kept_turns(talk.store, talk.session_id, first),
        system=system_rows(setup),
        counter=setup.counter,
        crumb_present=state.history_has_trim_breadcrumb,
        taken_ids=await used_call_ids(talk.store, talk.session_id, first),
    )


async def restore(talk: Conversation) -> None:
    """Fill a conversation's history from the store. What no longer fits its limits goes, and is told."""
    keeper = talk.keeper
    keeper.history = await stored_history(talk)
    tell_mended(talk)
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
        await talk.emit(described(talk, event))


def described(talk: Conversation, event: Event) -> Event:
    """A call whose view was never recorded, since it has no result, as its tool would show it."""
    if not isinstance(event, ToolCallStarted) or event.title != event.name:
        return event
    tool = talk.setup.tools.get(event.name)
    if tool is None:
        return event
    view = tool.view(event.raw_input, talk.tool_context)
    return replace(event, title=view.title, kind=tool.kind, locations=view.locations)


def tell_mended(talk: Conversation) -> None:
    """A stored history that was broken works again; the person is told what was mended."""
    found = mended(talk.keeper.history)
    if found.turns:
        text = f"In {found.turns} turns, {found.rows} rows and {found.calls} calls had lost their other half."
        log.warning("session %s: %s", talk.session_id, text)
        talk.pending.append(Noticed("warning", "The stored history was repaired", text))
