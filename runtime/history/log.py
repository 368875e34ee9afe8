"""A list that can be lengthened and shortened at its front without being changed. Knows no turn."""

from collections.abc import Iterator
from typing import Generic, TypeVar

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
