"""Names for calls that are unique in a request. Knows no row."""

from collections.abc import Callable


class CallIds:
    """Gives ids out in order: the one wanted if it is free, else `id_2`, `id_3`, …, the next one free.

    taken: ids used before these. start: for an id, a number below which all its names are taken, so
    that an id used in every turn costs the same in the last as in the first. `numbers`: the same for
    the ids given out here.
    """

    __slots__ = ("_start", "_taken", "_used", "numbers")

    def __init__(
        self, taken: Callable[[str], bool] = lambda _: False, start: Callable[[str], int] = lambda _: 2
    ) -> None:
        self._taken = taken
        self._start = start
        self._used: set[str] = set()
        self.numbers: dict[str, int] = {}

    def has(self, name: str) -> bool:
        """True when it is in use."""
        return name in self._used or self._taken(name)

    def give(self, wanted: str) -> str:
        """A free id for a call that has this one; it is in use from now on."""
        free = wanted
        if self.has(wanted):
            number = self.numbers.get(wanted) or self._start(wanted)
            while self.has(f"{wanted}_{number}"):
                number += 1
            self.numbers[wanted] = number + 1
            free = f"{wanted}_{number}"
        self._used.add(free)
        return free
