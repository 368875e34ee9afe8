"""A transcript's page as the API gives it: turn by turn, with what the model still gets of each, and why.

Knows the store's port and the stored steps; changes neither.
"""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal

import orjson

from acp_server.gateway.api.sessions import Looking, Seen, first_kept
from acp_server.gateway.api.trims import Place, cut_text, page_of, taken_by, trim_at
from acp_server.gateway.api.turn_index import behind
from runtime.transcript.restore import iteration_events, turn_rows
from runtime.transcript.turn_record import PAGE, TurnRecord, fold
from runtime.values.errors import ConfigError, StoreError
from runtime.values.events import AgentText, AgentThought, Event, FileDiff, ToolCallStarted
from schemas.gateway_api import (
    CutText,
    DiffPart,
    TextPart,
    ToolPart,
    TranscriptPage,
    TrimLine,
    TrimPart,
    TurnAnswer,
    TurnView,
)
from schemas.gateway_queries import TranscriptQuery

MOST_TRIMS = 100
"""Of one turn."""

Piece = TextPart | ToolPart | TrimPart


@dataclass(frozen=True, slots=True)
class View:
    """What the model gets of a session now. first: the oldest turn that it still gets, `held` ones aside."""

    first: int
    held: frozenset[str]
    collapsed: frozenset[str]


async def transcript_page(looking: Looking, seen: Seen, query: TranscriptQuery) -> TranscriptPage:
    """The turns of a page."""
    on_page = page_of(seen.index.records, query)
    view = await view_of(looking, seen)
    turns: list[TurnAnswer] = []
    async with aclosing(records_at(seen, on_page)) as records:
        async for record in records:
            turns.append(await turn_answer(seen, record, view, query.text_limit))
    place = Place(seen.index.records, on_page)
    return TranscriptPage(
        session_id=seen.record.session_id,
        turns=tuple(turns),
        next_after=place.next_after,
        previous_before=place.previous_before,
    )


async def records_at(seen: Seen, places: Sequence[int]) -> AsyncGenerator[TurnRecord, None]:
    """The records that begin at those places, which follow each other; no entry behind them is read."""
    if not places:
        return
    behind_them = behind(seen.index.records, places[-1], 1)
    last = behind_them[0] - 1 if behind_them else seen.index.last
    records: list[TurnRecord] = []
    after = places[0] - 1
    while after < last:
        page = await seen.store.entries(seen.record.session_id, after=after, limit=min(PAGE, last - after))
        if not page:
            break
        after = page[-1].seq
        for turn in fold(records, page):
            yield turn
    for turn in records:
        yield turn


async def view_of(looking: Looking, seen: Seen) -> View:
    """What the model gets now. Settings that cannot be used hide only which turns are collapsed."""
    try:
        meter = (await looking.meter(seen)).meter
        collapsed = frozenset(turn.turn_id for turn in meter.turns if turn.collapsed)
    except (ConfigError, StoreError):
        collapsed = frozenset()
    return View(await first_kept(seen), frozenset(seen.state.held), collapsed)


async def turn_answer(seen: Seen, turn: TurnRecord, view: View, limit: int) -> TurnAnswer:
    """A turn. limit: characters of each text."""
    prompt = turn.prompt
    number = None if prompt is None else seen.index.number_at(turn.first_seq)
    trims = await trims_in(seen, turn)
    state = what_is_seen(turn, number, view)
    taken = None
    if state == "dropped" and number is not None:
        taken = await taken_by(seen, number, turn.turn_id, turn.first_seq)
    return TurnAnswer(
        number=number,
        turn_id=turn.turn_id,
        entry=turn.first_seq,
        last_entry=turn.last_seq,
        view=state,
        pinned=turn.turn_id in seen.state.pins,
        goal=seen.state.goal is not None and seen.state.goal.turn_id == turn.turn_id,
        outcome=outcome_of(seen, turn),
        prompt=None if prompt is None else cut_text(prompt.text, limit),
        attachments=() if prompt is None else attachments_of(prompt.blocks),
        parts=tuple(parts_of(turn, trims, limit)),
        dropped_by=taken,
    )


def what_is_seen(turn: TurnRecord, number: int | None, view: View) -> TurnView:
    """What the model gets of a turn now."""
    if number is None:
        return "between"
    if not turn_rows(turn):
        return "never_sent"
    if number < view.first and turn.turn_id not in view.held:
        return "dropped"
    return "collapsed" if turn.turn_id in view.collapsed else "sent"


Outcome = Literal["done", "cancelled", "error", "no_model", "refused", "crash", "running", "open"]


def outcome_of(seen: Seen, turn: TurnRecord) -> Outcome | None:
    """How the turn ended, or stands."""
    if turn.prompt is None:
        return None
    if turn.end is not None:
        return turn.end.outcome
    if turn.first_seq != seen.index.records[-1]:
        return "crash"
    return "running" if seen.running else "open"


def attachments_of(blocks: Sequence[dict[str, object]]) -> tuple[str, ...]:
    """The kinds of blocks that are no text."""
    kinds = (str(block.get("type", "")) for block in blocks)
    return tuple(kind[:80] for kind in kinds if kind != "text")


async def trims_in(seen: Seen, turn: TurnRecord) -> list[TrimLine]:
    """The notices of a record, in order."""
    behind_it = behind(seen.index.records, turn.first_seq, 1)
    end = behind_it[0] if behind_it else seen.index.last + 1
    notices = behind(seen.index.notices, turn.first_seq - 1, MOST_TRIMS)
    found = [await trim_at(seen, entry) for entry in notices if entry < end]
    return [line for line in found if line is not None]


def parts_of(turn: TurnRecord, trims: Sequence[TrimLine], limit: int) -> Iterator[Piece]:
    """What is shown of a turn, notices where they came in."""
    ids = {trim.trim_id: trim for trim in trims}
    for iteration in turn.iterations:
        told = (*(one.trim_id for one in iteration.trims), *(one.trim_id for one in iteration.contexts))
        for trim_id in told:
            if trim_id and (line := ids.pop(trim_id, None)) is not None:
                yield TrimPart(trim=line)
        for event in iteration_events(iteration):
            yield from shown(event, limit)
    if turn.end is not None and turn.end.told:
        yield TextPart(type="note", text=cut_text(turn.end.told, limit))
    yield from (TrimPart(trim=line) for line in ids.values())


def shown(event: Event, limit: int) -> Iterator[Piece]:
    """One part of a turn."""
    match event:
        case AgentThought():
            yield TextPart(type="thought", text=cut_text(event.text, limit))
        case AgentText():
            yield TextPart(type="text", text=cut_text(event.text, limit))
        case ToolCallStarted():
            yield tool_part(event, limit)
        case _:
            pass


def tool_part(event: ToolCallStarted, limit: int) -> ToolPart:
    """A call and its result."""
    return ToolPart(
        call_id=event.call_id,
        name=event.name,
        title=event.title,
        kind=event.kind,
        status=event.status,
        input=cut_text(orjson.dumps(event.raw_input).decode(), limit),
        content=cut_text(event.content or "", limit),
        diffs=tuple(diff_part(diff, limit) for diff in event.diffs),
    )


def diff_part(diff: FileDiff, limit: int) -> DiffPart:
    """A change of a file."""
    old: CutText | None = None if diff.old_text is None else cut_text(diff.old_text, limit)
    return DiffPart(path=diff.path, old=old, new=cut_text(diff.new_text, limit))
