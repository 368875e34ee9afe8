"""Stored sessions brought back, with history and visible transcript, and copied to go on with.

Knows no protocol and changes nothing in the source. A load writes only where limits have shrunk since and
turns must go; a copy is of the whole session, or up to the end of a turn.
"""

import logging
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace

from runtime.conversation.conversation import Conversation
from runtime.conversation.lease import noting
from runtime.history.live.history import History
from runtime.history.request.trims import mended
from runtime.transcript.recorder import Recorder
from runtime.transcript.restore import turn_events
from runtime.transcript.session_state import Counting, goal_record, keep_what_counts, with_learned
from runtime.transcript.stored_history import (
    Surroundings,
    UsedIds,
    first_kept_entry,
    joined_turns,
    read_history,
)
from runtime.transcript.turn_record import PAGE, TurnRecord, read_turns
from runtime.values.errors import InvalidParams, ResourceNotFound, SessionBusy
from runtime.values.events import Event, Noticed, ToolCallStarted
from runtime.values.ids_and_time import new_id
from runtime.values.rows import Row
from runtime.values.stored import LAST_SEQ, SessionRecord, Store
from schemas.transcript import SessionState

log = logging.getLogger("wholeturn.loading")


def read_state(text: str) -> SessionState:
    """A session's stored cut. One that cannot be read counts as none: the transcript is there still."""
    found = readable_state(text)
    if found is None:
        log.warning("the stored state of a session cannot be read; it begins without one")
        return SessionState()
    return found


def readable_state(text: str) -> SessionState | None:
    """The same; None for what cannot be read."""
    try:
        return SessionState.model_validate_json(text or "{}")
    except ValueError:
        return None


async def kept_turns(
    store: Store, session_id: str, first: int, *, before: int | None = None
) -> list[tuple[str, list[Row]]]:
    """(turn id, rows) of each turn from that entry on, oldest first. before: the entry behind the last."""
    async with aclosing(joined_turns(store, session_id, first, before)) as turns:
        return [turn async for turn in turns]


async def used_call_ids(store: Store, session_id: str, before: int) -> list[str]:
    """The provider's ids of the calls before that entry, in order, repeated ones too."""
    used, after = UsedIds(), 0
    while after < before - 1:
        page = await store.entries(session_id, after=after, limit=min(PAGE, before - 1 - after))
        if not page:
            break
        after = page[-1].seq
        for entry in page:
            used.add(entry)
    return used.all()


async def stored_history(talk: Conversation) -> History:
    """The history as the session left it, made from the store."""
    first = await first_kept_entry(talk.store, talk.session_id, talk.keeper.state)
    return await history_from(talk, first, await used_call_ids(talk.store, talk.session_id, first))


async def history_from(talk: Conversation, first: int, taken: Sequence[str]) -> History:
    """The history from an entry on. taken: the provider's ids of the calls before it."""
    keeper = talk.keeper
    around = Surroundings(keeper.system, talk.setup.counter, taken_ids=taken)
    history = await read_history(talk.store, talk.session_id, keeper.state, around, first=first)
    keep_what_counts(history, keeper.state)
    return history


async def restore(talk: Conversation, *, trim: bool = True, replayed: bool = False) -> None:
    """Fill a conversation's history from the store. What no longer fits its limits goes, and is told.

    trim=False: nothing may be told yet; what is too much goes with the next turn. replayed: a replay follows.
    It reads the whole transcript anyway and completes the history from it, so that the time to its first
    event does not grow with the session.
    """
    keeper = talk.keeper
    keeper.route = with_learned(keeper.route, keeper.state.learned)
    if replayed:
        first = await first_kept_entry(talk.store, talk.session_id, keeper.state)
        keeper.history = await history_from(talk, first, ())
    else:
        keeper.history = await stored_history(talk)
    tell_mended(talk)
    keeper.refusals.fitted = keeper.history.turn_count > 0
    keeper.composed = keeper.fitted(check_capacity=False)
    # Where notes are to stand for what goes, it goes with the next turn: now there is no time to write them.
    at_once = trim and talk.setup.profile.dropped_turns != "summarize"
    for notice in keeper.composed.trims if at_once else ():
        recorder = Recorder(talk.store, talk.session_id, f"restore-{new_id()}")
        try:
            facts = {"rounds_cut": keeper.composed.history.marks.rounds_cut}
            await keeper.shorten(keeper.composed.history, notice, recorder, 0, facts)
        except SessionBusy:
            break  # it can be read all the same; the first prompt here that may write trims
    talk.notes.restored = (keeper.history, keeper.history.row_count) if replayed else None


async def reload(talk: Conversation) -> None:
    """Take in what another process wrote to the session since it was restored here, and say so."""
    record = await talk.store.session(talk.session_id)
    if record is None:
        data = {"sessionId": talk.session_id}
        raise ResourceNotFound("This session was deleted in another place.", data=data)
    talk.title, talk.keeper.state = record.title, read_state(record.state)
    with noting(talk.store):
        await restore(talk)
    text = "What was said there is known here now; loading the session shows it."
    talk.pending.append(Noticed("info", "This session went on in another window", text))


async def replay(talk: Conversation) -> None:
    """Show everything the person saw, in order. Memory does not grow with the session's texts."""
    first = await first_kept_entry(talk.store, talk.session_id, talk.keeper.state)
    used = UsedIds()
    async with aclosing(read_turns(talk.store, talk.session_id)) as turns:
        async for turn in turns:
            await show(talk, turn)
            if turn.first_seq < first:
                used.add_turn(turn)
    await complete(talk, first, used.all())


async def complete(talk: Conversation, first: int, taken: Sequence[str]) -> None:
    """Give a restored history the ids that were used before its first turn, if it is still as it was made."""
    keeper = talk.keeper
    restored, talk.notes.restored = talk.notes.restored, None
    if not taken or restored is None or not unused(keeper.history, *restored):
        return
    history = await history_from(talk, first, taken)
    if unused(keeper.history, *restored):
        history.marks = keeper.history.marks
        keeper.history = history
        keeper.composed = keeper.fitted(check_capacity=False)


def unused(history: History, restored: History, rows: int) -> bool:
    """Whether no turn has touched the history since it was restored."""
    return history is restored and not history.running and history.row_count == rows


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


def new_session_id() -> str:
    """An id for a session."""
    return f"sess_{new_id()}"


async def copy_session(store: Store, source: SessionRecord, *, now: str) -> SessionRecord:
    """A new session with all entries of `source` and its cut. now: ISO 8601 UTC."""
    record = source._replace(session_id=new_session_id(), created_at=now, updated_at=now)
    await store.fork_session(record, source.session_id, up_to=LAST_SEQ)
    return record


async def rewind(store: Store, source: SessionRecord, number: int, *, now: str) -> SessionRecord:
    """A new session that ends with the turn of this number, and knows of the model's view what it was then.

    A trim that came later is undone in it. Raises InvalidParams when there is no such turn.
    """
    counting = Counting()
    async with aclosing(read_turns(store, source.session_id)) as turns:
        async for turn in turns:
            last = turn.prompt is not None and counting.number + 1 == number
            counting.add(turn, with_trims_after=not last)
            if last:
                record = _rewound(source, counting, now)
                await store.fork_session(record, source.session_id, up_to=turn.last_seq)
                return record
    raise InvalidParams(f"There is no turn {number}: this session has {counting.number}.")


def _rewound(source: SessionRecord, counting: Counting, now: str) -> SessionRecord:
    state = read_state(source.state).model_copy(
        update={
            "first_turn_id": counting.first_turn_id(),
            "dropped_turns": counting.dropped,
            "history_has_trim_breadcrumb": counting.dropped > 0,
            "held": counting.cut[1] if counting.dropped else (),
            "notes": counting.notes if counting.dropped else "",
            "goal": goal_record(counting.goal),
        }
    )
    title = f"{source.title} (to turn {counting.number})" if source.title else None
    return source._replace(
        session_id=new_session_id(),
        created_at=now,
        updated_at=now,
        title=title,
        state=state.model_dump_json(),
    )
