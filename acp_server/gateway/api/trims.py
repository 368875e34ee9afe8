"""Notices as the API gives them: what was told of the history, where, and which turns left by it."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from acp_server.gateway.api.sessions import Seen
from acp_server.gateway.api.turn_index import ahead_of, behind
from runtime.transcript.progress import pass_event, trim_event
from runtime.transcript.turn_record import iteration_of
from runtime.values.events import HistoryTrimmed
from runtime.values.stored import StoredEntry
from schemas.gateway_api import CutText, TrimLine, TrimList, TrimTokensAnswer, TurnRange
from schemas.gateway_queries import EntriesQuery, TrimsQuery
from schemas.transcript import ANY_STEP, ContextStep, ExpandStep, TrimStep

SUMMARY_TEXT = 4000
"""Characters of a summary that go along with a notice."""
LOOKED_AT = 8
"""Notices that are looked at for the one that took a turn."""


class Place:
    """A page's place among places: those on it, and how to go on to both sides."""

    def __init__(self, places: "array[int]", on_page: list[int]) -> None:
        first = bisect_left(places, on_page[0]) if on_page else 0
        last = bisect_right(places, on_page[-1]) if on_page else len(places)
        self.next_after = places[last] - 1 if last < len(places) else None
        self.previous_before = on_page[0] if on_page and first else None


def page_of(places: "array[int]", query: EntriesQuery) -> list[int]:
    """The places on the page that is asked for, in order."""
    if query.before is not None and query.after is None:
        return ahead_of(places, query.before, query.limit)
    return behind(places, query.after or 0, query.limit)


async def trim_list(seen: Seen, query: TrimsQuery) -> TrimList:
    """A page of notices."""
    on_page = page_of(seen.index.notices, query)
    lines = [await trim_at(seen, entry) for entry in on_page]
    place = Place(seen.index.notices, on_page)
    return TrimList(
        trims=tuple(line for line in lines if line is not None),
        next_after=place.next_after,
        previous_before=place.previous_before,
    )


async def trim_at(seen: Seen, entry: int) -> TrimLine | None:
    """The notice that is recorded there; None if it cannot be read."""
    found = await seen.store.entries(seen.record.session_id, after=entry - 1, limit=1)
    if not found or found[0].seq != entry:
        return None
    try:
        step = ANY_STEP.validate_json(found[0].payload)
    except ValueError:
        return None
    return await trim_line(seen, found[0], step)


async def trim_line(seen: Seen, entry: StoredEntry, step: object) -> TrimLine | None:
    """The notice of an entry; None if it is none."""
    match step:
        case TrimStep():
            held = [await seen.index.number(seen.store, turn_id) for turn_id in step.held]
            gone = dropped(seen, entry.seq, held) if step.dropped_turns else ()
            return told(seen, entry, trim_event(step), gone, step.summary_failure)
        case ContextStep() if step.trim_id:
            return told(seen, entry, pass_event(step))
        case ExpandStep():
            return brought_back(seen, entry, step)
        case _:
            return None


def told(
    seen: Seen,
    entry: StoredEntry,
    event: HistoryTrimmed,
    gone: Iterable[TurnRange] = (),
    summary_failure: str = "",
) -> TrimLine:
    """A trim."""
    turn, call = place_of(seen, entry)
    return TrimLine(
        type="history_trimmed",
        entry=entry.seq,
        session_id=seen.record.session_id,
        trim_id=event.trim_id,
        turn_id=entry.turn_id,
        turn=turn,
        call=call,
        dropped_messages=event.dropped_messages,
        dropped_turns=event.dropped_turns,
        kept_turns=event.kept_turns,
        restored_turns=0,
        reason=event.reason,
        strategy=event.strategy,
        note=event.note,
        tokens=tokens_of(event),
        first_kept_turn=cut_at(seen, entry.seq),
        dropped=tuple(gone),
        summary=cut_text(event.summary, SUMMARY_TEXT) if event.summary else None,
        summary_failure=summary_failure or None,
    )


def brought_back(seen: Seen, entry: StoredEntry, step: ExpandStep) -> TrimLine:
    """Turns that came back."""
    return TrimLine(
        type="history_expanded",
        entry=entry.seq,
        session_id=seen.record.session_id,
        trim_id=None,
        turn_id=entry.turn_id,
        turn=None,
        call=None,
        dropped_messages=0,
        dropped_turns=0,
        kept_turns=step.kept_turns,
        restored_turns=step.restored_turns,
        reason="brought back by the user",
        strategy="user",
        note="",
        tokens=None,
        first_kept_turn=cut_at(seen, entry.seq),
        dropped=(),
        summary=None,
        summary_failure=None,
    )


def tokens_of(event: HistoryTrimmed) -> TrimTokensAnswer | None:
    """The figures; None for a trim by count alone."""
    tokens = event.tokens
    if tokens is None:
        return None
    return TrimTokensAnswer(
        budget=tokens.budget,
        before=tokens.before,
        after=tokens.after,
        before_source=tokens.before_source,
        after_source=tokens.after_source,
    )


def place_of(seen: Seen, entry: StoredEntry) -> tuple[int | None, int | None]:
    """The number of the turn in which the entry stands, and of its request; None outside of a turn."""
    index = seen.index
    at = bisect_right(index.records, entry.seq) - 1
    number = index.number_at(entry.seq)
    if at < 0 or not number or index.prompts[number - 1] < index.records[at]:
        return None, None
    return number, iteration_of(entry.key) + 1


def cut_at(seen: Seen, notice: int) -> int | None:
    """The number of the oldest turn that was kept behind a notice."""
    at = bisect_left(seen.index.notices, notice)
    return seen.index.cuts[at] if at < len(seen.index.cuts) else None


def dropped(seen: Seen, notice: int, held: Iterable[int | None]) -> tuple[TurnRange, ...]:
    """The turns that left with a notice: those between the cut before it and its own, but for held ones."""
    at = bisect_left(seen.index.notices, notice)
    if at >= len(seen.index.cuts):
        return ()
    first, last = (seen.index.cuts[at - 1] if at else 1), seen.index.cuts[at]
    stays = set(held)
    return ranges(number for number in range(first, last) if number not in stays)


def ranges(numbers: Iterable[int]) -> tuple[TurnRange, ...]:
    """Ascending numbers as ranges."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return tuple(TurnRange(first=first, last=last) for first, last in found)


async def taken_by(seen: Seen, number: int, turn_id: str, entry: int) -> TrimLine | None:
    """The notice with which a dropped turn left; None if that is not recorded. entry: of its prompt."""
    index, session_id = seen.index, seen.record.session_id
    earliest, at = bisect_right(index.notices, entry), len(index.notices)
    # From the end: what came back in between left once more.
    while at > earliest and index.cuts[at - 1] > number:
        at -= 1
    for notice in index.notices[at : at + LOOKED_AT]:
        found = await seen.store.entries(session_id, after=notice - 1, limit=1)
        step = ANY_STEP.validate_json(found[0].payload) if found else None
        if isinstance(step, TrimStep) and turn_id not in step.held:
            return await trim_line(seen, found[0], step)
    return None


def cut_text(text: str, limit: int) -> CutText:
    """A text's beginning, with the length of all of it."""
    return CutText(text=text[:limit], length=len(text))
