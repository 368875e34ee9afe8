"""Whether what a replay made again is what was recorded, and recorded trims taken out of a history again.

Requests are compared by digest, trims by figures. Pure; decides nothing.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace

from runtime.history.live.history import History
from runtime.history.live.preamble import notes_piece
from runtime.history.live.turn import completed_rounds
from runtime.history.live.without_parts import reduced_to
from runtime.history.request.digest import request_digest
from runtime.history.request.trims import emptied
from runtime.history.rows.notice import Strategy, TrimNotice
from runtime.values.model import ModelRequest
from schemas.transcript import RequestRecord, TrimStep


class Difference(Exception):
    """What was made again is not what was recorded; the text says what and where."""


def compare(place: str, record: RequestRecord, request: ModelRequest) -> None:
    """Raise Difference unless the request is the recorded one, byte for byte."""
    rows = sum(len(segment.rows) for segment in request.segments)
    if rows != record.rows:
        raise Difference(f"{place}: {record.rows} rows were sent, {rows} are made again")
    digest = request_digest(request)
    if digest != record.digest:
        raise Difference(
            f"{place}: the same {rows} rows, but sha256 {digest[:12]} is not {record.digest[:12]}"
        )


def check_trims(place: str, made: Sequence[TrimNotice], recorded: Sequence[TrimStep]) -> None:
    """Raise Difference unless the trims are the recorded ones, with all their figures."""
    again, then = [trim_facts(trim) for trim in made], [recorded_facts(trim) for trim in recorded]
    if again != then:
        raise Difference(f"{place}: trimmed then: {then or 'nothing'}; again: {again or 'nothing'}")


TrimFacts = tuple[int, int, int, str, str, tuple[int, int, int] | None]


def trim_facts(trim: TrimNotice) -> TrimFacts:
    """What is compared of a trim that was made again."""
    tokens = (trim.tokens.budget, trim.tokens.before, trim.tokens.after) if trim.tokens else None
    kept = trim.dropped_messages, trim.dropped_turns, trim.kept_turns
    return (*kept, str(trim.reason), str(trim.strategy), tokens)


def recorded_facts(trim: TrimStep) -> TrimFacts:
    """The same of a recorded one."""
    tokens = None
    if trim.token_budget is not None and trim.tokens_before is not None and trim.tokens_after is not None:
        tokens = trim.token_budget, trim.tokens_before, trim.tokens_after
    return trim.dropped_messages, trim.dropped_turns, trim.kept_turns, trim.reason, trim.strategy, tokens


def cut_as_recorded(history: History, trims: Sequence[TrimStep]) -> History:
    """The history without what these trims took, by what was recorded of them, with the notes that stand for
    it.
    """
    for trim in trims:
        if trim.dropped_turns and not trim.kept_turns:
            history = emptied(history)
        elif trim.dropped_turns and trim.first_turn_id:
            history = reduced_to(history, trim.first_turn_id, trim.held)
        elif trim.dropped_turns:
            history = history.without_oldest(trim.dropped_turns)
        if trim.rounds_cut is not None:
            history = copy(history)
            history.marks = replace(history.marks, rounds_cut=max(trim.rounds_cut, 0))
        elif trim.strategy == Strategy.SHORTEN and not trim.dropped_turns:
            history = shortened_by(history, trim.dropped_messages)
        if trim.summary:
            history = copy(history)
            notes = notes_piece(trim.summary, history.shared.counter)
            history.beside = replace(history.beside, notes=notes)
    return history


def shortened_by(history: History, results: int) -> History:
    """The history with so many more results of its newest turn's oldest rounds cut."""
    turn, rounds = history.shown, history.marks.rounds_cut
    if turn is None:
        return history
    wanted = turn.shortened_results(rounds) + results
    most = len(completed_rounds(turn.repaired.rows))
    while rounds < most and turn.shortened_results(rounds) < wanted:
        rounds += 1
    other = copy(history)
    other.marks = replace(history.marks, rounds_cut=rounds)
    return other
