"""A live history for another model. Knows no provider."""

from dataclasses import replace

from runtime.history.beside import notes_piece
from runtime.history.counter import TokenCounter
from runtime.history.turns import History


def moved(history: History, counter: TokenCounter) -> History:
    """The same turns for another model, also while one runs: priced by its counter, and without reasoning
    that a provider wants back, since no other one takes it. Leaves `history` as it is; costs all of it.

    Bytes of segments that stay the same are not made again.
    """
    system = history.system
    other = History(
        system.leading, late_system=system.late, counter=counter, crumb_present=history.crumb_present
    )
    other.shared = replace(history.shared, counter=counter)
    other.running, other.marks = history.running, history.marks
    beside, notes = history.beside, notes_piece(history.beside.notes_text, counter)
    other.beside = replace(beside, crumb=other.beside.crumb, notes=notes)
    for turn in history.past:
        priced = turn.moved(other.shared)
        other.past, other.sums = other.past.pushed(priced), other.sums.plus(priced)
    if history.current is not None:
        other.current = history.current.moved(other.shared)
    return other
