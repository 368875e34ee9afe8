"""The lines that take the place of those that an edit means, where it has them in another form. Pure.

Whatever the edit leaves as it is stays as the file has it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from runtime.tools.edits.indentation import Indents, lead, usual_step
from runtime.tools.edits.match_levels import Level
from runtime.tools.edits.quotes_and_escapes import Spelling


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its end. source: the index of the file's line that it was, None for another."""

    text: str
    source: int | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where an old text stands in a file. rows: for each of its lines the indexes of the file's lines.

    Blank lines of which there are not as many stand for each other: the first for all, the others for none.
    """

    rows: tuple[tuple[int, ...], ...]

    @property
    def first(self) -> int:
        """Index of its first line."""
        return self.rows[0][0]

    @property
    def end(self) -> int:
        """Index behind its last line."""
        return max(index for row in self.rows for index in row) + 1


def splice(
    lines: Sequence[str], place: Place, old: Sequence[str], new: Sequence[str], level: Level, step: str
) -> list[Line] | None:
    """The new lines as they fit in there. None when there is more than one way to write them.

    lines: of the file. old, new: of the edit. step: the file's usual indentation.
    """
    return _Splice(lines, place, old, new, level, step).made()


class _Splice:
    def __init__(
        self,
        lines: Sequence[str],
        place: Place,
        old: Sequence[str],
        new: Sequence[str],
        level: Level,
        step: str,
    ) -> None:
        self._lines = lines
        self._rows = place.rows
        self._old = old
        self._new = new
        pairs = [
            (line, lines[row[0]]) for line, row in zip(old, place.rows, strict=True) if row and line.strip()
        ]
        tails = {(_tail(line), _tail(found)) for line, found in pairs if _tail(line)}
        self._drops_tails = bool(tails) and all(not there for _, there in tails)
        steps = usual_step([*old, *new]), step
        self._indents = Indents([(lead(line), lead(found)) for line, found in pairs], steps)
        self._known = {line.strip(): found.strip() for line, found in pairs}
        self._spelling = Spelling([(line.strip(), found.strip()) for line, found in pairs], level)

    def made(self) -> list[Line] | None:
        made: list[Line] = []
        before, after = [[line.strip() for line in lines] for lines in (self._old, self._new)]
        for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            for number in range(c, d):
                # As many old lines as new ones are taken for the same lines, changed.
                same = tag == "equal" or (tag == "replace" and b - a == d - c)
                lines = self._changed(a + number - c, number) if same else self._added(number)
                if lines is None:
                    return None
                made += lines
        return made

    def _changed(self, index: int, number: int) -> list[Line] | None:
        old, new, row = self._old[index], self._new[number], self._rows[index]
        if not old.strip() or not new.strip():
            both = not old.strip() and not new.strip()
            return [Line(self._lines[at], at) for at in row] if both else self._added(number)
        found = self._lines[row[0]]
        indent = lead(found) if lead(new) == lead(old) else self._indent(number)
        words = self._spelling.changed(found.strip(), old.strip(), new.strip())
        if indent is None or words is None:
            return None
        end = _tail(found) if _tail(new) == _tail(old) else self._tail(new)
        text = f"{indent}{words}{end}"
        return [Line(text, row[0] if text == found else None)]

    def _added(self, number: int) -> list[Line] | None:
        new = self._new[number]
        if not new.strip():
            return [Line("")]
        # An old line that stands somewhere else now is still that line.
        words = self._known.get(new.strip()) or self._spelling.added(new.strip())
        indent = self._indent(number)
        return None if indent is None or words is None else [Line(f"{indent}{words}{self._tail(new)}")]

    def _tail(self, new: str) -> str:
        """The spaces at the end of a new line, unless they are a habit that the file does not share."""
        return "" if self._drops_tails else _tail(new)

    def _indent(self, number: int) -> str | None:
        return self._indents.of(lead(self._new[number]), first=number == 0)


def _tail(line: str) -> str:
    return line[len(line.rstrip()) :]
