"""A composed request with notes about the turns that were dropped so far. Pure."""

from copy import copy
from dataclasses import replace

from runtime.history.beside import notes_piece
from runtime.history.budget import output_limit
from runtime.history.compose import Composed
from runtime.profiles import Route


def with_notes(composed: Composed, text: str, route: Route) -> Composed:
    """The same request with this row behind the breadcrumb, in place of the notes it had. '' for none.

    Composed anew with the history that it leaves, it comes out the same.
    """
    history = copy(composed.history)
    old, new = history.beside.notes, notes_piece(text, history.shared.counter)
    history.beside = replace(history.beside, notes=new)
    at = (history.system.piece is not None) + history.crumb_present
    added = () if new is None else (new.segment,)
    segments = (*composed.segments[:at], *added, *composed.segments[at + (old is not None) :])
    more = (0 if new is None else new.tokens) - (0 if old is None else old.tokens)
    raw = composed.raw_tokens + more
    estimated = composed.shape.calibrated(raw)
    return replace(
        composed,
        segments=segments,
        history=history,
        raw_tokens=raw,
        message_tokens=composed.message_tokens + more,
        estimated_tokens=estimated,
        max_output_tokens=output_limit(composed.budget, route, estimated),
    )
