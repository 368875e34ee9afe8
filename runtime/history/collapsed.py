"""The older turns of a history as they are sent collapsed, kept from call to call. Knows no limit."""

from dataclasses import dataclass, field

from runtime.history.face import Face
from runtime.history.log import Log
from runtime.history.turn import Turn


@dataclass(frozen=True, slots=True)
class Collapsed:
    """Faces of the oldest turns, collapsed for these tools, and sums over them.

    saved: tokens fewer than the whole turns. unchecked: faces that still hold calls, or broken pairs.
    """

    callable_tools: frozenset[str] = frozenset()
    faces: Log[Face] = field(default_factory=Log)
    saved: int = 0
    images: int = 0
    unchecked: int = 0

    def reaching(self, past: Log[Turn], callable_tools: frozenset[str], count: int) -> "Collapsed":
        """The state in which the oldest `count` turns are collapsed. Costs the turns that are new in it."""
        state = self
        if len(self.faces) > count or self.callable_tools != callable_tools:
            state = Collapsed(callable_tools)
        for index in range(len(state.faces), count):
            face = past[index].collapsed(callable_tools)
            state = state._with(past[index], face, state.faces.pushed(face), 1)
        return state

    def dropped(self, past: Log[Turn], count: int) -> "Collapsed":
        """The state without the oldest `count` turns of the history."""
        count = min(count, len(self.faces))
        state = self
        for index in range(count):
            state = state._with(past[index], self.faces[index], self.faces, -1)
        return state._with(None, None, self.faces.dropped(count), 0)

    def _with(self, turn: Turn | None, face: Face | None, faces: Log[Face], sign: int) -> "Collapsed":
        if turn is None or face is None:
            return Collapsed(self.callable_tools, faces, self.saved, self.images, self.unchecked)
        unchecked = bool(face.call_ids) or not face.whole_pairs
        return Collapsed(
            self.callable_tools,
            faces,
            self.saved + sign * (turn.whole().tokens - face.tokens),
            self.images + sign * face.images,
            self.unchecked + sign * unchecked,
        )
