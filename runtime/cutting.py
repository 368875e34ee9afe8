"""What recorded trims took out of a history, taken out again by their figures. Pure, decides nothing."""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace

from runtime.history.beside import notes_piece
from runtime.history.dropping import reduced_to
from runtime.history.live import emptied
from runtime.history.notice import Strategy
from runtime.history.shorten import completed_rounds
from runtime.history.turns import History
from schemas.transcript import TrimStep


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
