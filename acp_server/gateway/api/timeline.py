"""The requests of a session as the API gives them, some turns at a time: what filled each, what left.

A page is made from the turns that were kept before it, so its cost does not grow with the session.
"""

from bisect import bisect_left
from collections.abc import AsyncGenerator
from contextlib import aclosing

from acp_server.gateway.api.sessions import Seen
from acp_server.gateway.api.transcript import records_at
from acp_server.gateway.api.trims import Place, page_of
from runtime.history.live.history import History
from runtime.history.rows.token_counter import HEURISTIC
from runtime.replay.stored_session import Retrace, Traced
from runtime.transcript.stored_history import Surroundings, first_kept_entry, read_history
from runtime.transcript.turn_record import TurnRecord
from schemas.gateway_api import RequestPoint, TimelinePage
from schemas.gateway_queries import EntriesQuery
from schemas.transcript import ANY_STEP, ExpandStep, SessionState, SetupStep, TrimStep


async def timeline_page(seen: Seen, query: EntriesQuery) -> TimelinePage:
    """The requests of a page's turns."""
    on_page = page_of(seen.index.records, query)
    points: list[RequestPoint] = []
    if on_page:
        async with aclosing(traced_from(seen, on_page)) as calls:
            async for turn, call in calls:
                if turn.first_seq >= on_page[0]:
                    points.append(point(seen, turn, call))
    place = Place(seen.index.records, on_page)
    return TimelinePage(
        session_id=seen.record.session_id,
        requests=tuple(points),
        next_after=place.next_after,
        previous_before=place.previous_before,
    )


async def traced_from(seen: Seen, places: list[int]) -> AsyncGenerator[tuple[TurnRecord, Traced], None]:
    """The calls of these records, and of the one before them: it may have trimmed for the first of them."""
    at = bisect_left(seen.index.records, places[0])
    first = seen.index.records[max(at - 1, 0)]
    retrace = Retrace(await history_before(seen, first))
    async with aclosing(records_at(seen, [first, *places])) as turns:
        async for turn in turns:
            for digest in retrace.missing(turn):
                if (step := await setup_of(seen, digest)) is not None:
                    retrace.know(step)
            for call in retrace.add(turn):
                yield turn, call
            if turn.expand is not None:
                state = state_of(turn.expand, retrace.history)
                retrace.history = await history_of(seen, state, turn.first_seq)


async def history_before(seen: Seen, entry: int) -> History:
    """What was kept when that entry was written."""
    at = bisect_left(seen.index.notices, entry) - 1
    state = SessionState()
    while at >= 0:
        found = await seen.store.entries(seen.record.session_id, after=seen.index.notices[at] - 1, limit=1)
        step = ANY_STEP.validate_json(found[0].payload) if found else None
        if isinstance(step, TrimStep | ExpandStep) and (step.first_turn_id or isinstance(step, ExpandStep)):
            state = state_of(step, None)
            break
        at -= 1
    return await history_of(seen, state, entry)


def state_of(step: TrimStep | ExpandStep, history: History | None) -> SessionState:
    """The cut that a step left."""
    notes = step.summary if isinstance(step, TrimStep) else ""
    if history is not None and step.dropped_turns:
        notes = history.beside.notes_text
    return SessionState(
        first_turn_id=step.first_turn_id,
        held=step.held,
        history_has_trim_breadcrumb=bool(step.first_turn_id),
        notes=notes,
    )


async def history_of(seen: Seen, state: SessionState, before: int) -> History:
    """The turns of a cut that were there before an entry. Their system text comes with the first request."""
    session_id = seen.record.session_id
    first = await first_kept_entry(seen.store, session_id, state)
    around = Surroundings((), HEURISTIC)
    return await read_history(seen.store, session_id, state, around, first=first, before=before)


async def setup_of(seen: Seen, digest: str) -> SetupStep | None:
    """What requests of that digest were composed under; None if it is not stored."""
    session_id = seen.record.session_id
    entry = await seen.store.position(session_id, f"setup:{digest}")
    found = [] if entry is None else await seen.store.entries(session_id, after=entry - 1, limit=1)
    step = ANY_STEP.validate_json(found[0].payload) if found else None
    return step if isinstance(step, SetupStep) else None


def point(seen: Seen, turn: TurnRecord, call: Traced) -> RequestPoint:
    """A request."""
    return RequestPoint(
        turn=seen.index.number_at(turn.first_seq),
        call=call.call + 1,
        estimated=call.estimated,
        used=call.used,
        reported=call.reported,
        fixed=call.shares.fixed,
        beside=call.shares.beside,
        older=call.shares.older,
        whole=call.shares.whole,
        running=call.shares.running,
        collapsed_turns=call.collapsed,
        kept_turns=call.kept,
        trims_above=call.trims_above,
        window=call.window,
        trims=call.trims,
        dropped_turns=call.dropped_turns,
        dropped_messages=call.dropped_messages,
    )
