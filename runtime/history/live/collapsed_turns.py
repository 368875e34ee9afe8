"""The older turns of a history as they are sent collapsed, kept from call to call. Knows no limit.

They stand in a list that can be lengthened and shortened at its front without being changed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from runtime.history.live.rendering import Face
from runtime.history.live.turn import Turn

T = TypeVar("T")


class Log(Generic[T]):
    """Oldest first. `pushed` and `dropped` give a new view in O(1); views share one list."""

    __slots__ = ("_end", "_items", "_start")

    def __init__(self) -> None:
        self._items: list[T] = []
        self._start = 0
        self._end = 0

    def __len__(self) -> int:
        return self._end - self._start

    def __getitem__(self, index: int) -> T:
        return self._items[self._start + index]

    def __iter__(self) -> Iterator[T]:
        return iter(self._items[self._start : self._end])

    def _view(self, items: list[T], start: int, end: int) -> "Log[T]":
        view = Log[T]()
        view._items, view._start, view._end = items, start, end
        return view

    def pushed(self, item: T) -> "Log[T]":
        """The view with one more item."""
        if len(self._items) != self._end:
            # Another view has gone on from here: this one gets a list of its own.
            return self._view([*self, item], 0, len(self) + 1)
        self._items.append(item)
        return self._view(self._items, self._start, self._end + 1)

    def dropped(self, count: int) -> "Log[T]":
        """The view without its oldest `count` items; their memory goes once they are the larger part."""
        start = self._start + count
        if start > 2 * (self._end - start) + 16:
            return self._view(self._items[start : self._end], 0, self._end - start)
        return self._view(self._items, start, self._end)


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
