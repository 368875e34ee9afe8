"""What fills one request, in five portions that make its whole; requests are drawn of them. Pure."""

from dataclasses import dataclass

from runtime.history.load import current_face
from runtime.history.turns import History


@dataclass(frozen=True, slots=True)
class Portions:
    """Tokens, uncalibrated. fixed: system prompt and tools; beside: breadcrumb and notes; older: collapsed
    turns; whole: turns sent whole; running: the newest turn.
    """

    fixed: int
    beside: int
    older: int
    whole: int
    running: int


def portions(history: History, collapsed: int, messages: int, fixed: int) -> Portions:
    """The portions of a request with this history.

    collapsed: how many of its oldest turns are; messages: tokens of all rows; fixed: of what is no row.
    """
    system = history.system.piece.tokens if history.system.piece is not None else 0
    beside = (history.beside.crumb.tokens if history.crumb_present else 0) + history.beside.notes_tokens
    faces = history.collapse.faces
    older = sum(faces[index].tokens for index in range(collapsed))
    running = current_face(history).tokens
    whole = messages - system - beside - older - running
    return Portions(system + fixed, beside, older, whole, running)
