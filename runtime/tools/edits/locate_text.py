"""Where the text of an edit stands in a file, at each level of likeness. Pure.

A file is looked at as lines; a line feed is one character whatever the file has in its place.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

from runtime.tools.edits.fit_new_lines import Place
from runtime.tools.edits.indentation import usual_step
from runtime.tools.edits.match_levels import ONE_FOR_ONE, Level


@dataclass
class Text:
    """A file's text. raw: CRLF is one character of its own in it; plain: that one is a line feed, too.

    Places are the same in both.
    """

    raw: str
    mark: str
    _forms: dict[str, list[str]] = field(default_factory=dict)

    @cached_property
    def plain(self) -> str:
        """With line feeds alone."""
        return self.raw.replace(self.mark, "\n")

    @cached_property
    def lines(self) -> list[str]:
        """Without their ends; the last one is '' where the file ends with a line feed."""
        return self.plain.split("\n")

    @cached_property
    def starts(self) -> list[int]:
        """Where each line begins."""
        return [0, *accumulate(len(line) + 1 for line in self.lines)]

    @cached_property
    def step(self) -> str:
        """Its usual indentation."""
        return usual_step(self.lines)

    @cached_property
    def plain_signs(self) -> str:
        """With plain signs for typographic ones, one for one."""
        return self.plain.translate(ONE_FOR_ONE)

    def forms(self, level: Level) -> list[str]:
        """What counts of each line."""
        if level.name not in self._forms:
            self._forms[level.name] = [level.form(line) for line in self.lines]
        return self._forms[level.name]

    def line_of(self, at: int) -> int:
        """The number of the line in which a place lies, from 1."""
        return self.plain.count("\n", 0, at) + 1

    def line_feed(self, start: int, end: int) -> str:
        """What ends lines in that part: its own first line feed, else what ends most lines of the file."""
        found = [(at, sign) for sign in ("\n", self.mark) if (at := self.raw.find(sign, start, end)) >= 0]
        if found:
            return min(found)[1]
        return self.mark if self.raw.count(self.mark) > self.raw.count("\n") else "\n"


def text_of(raw: str, *others: str) -> Text:
    """The text, looked at. others: what may be put into it."""
    taken = set(raw).union(*others)
    mark = next(chr(code) for code in range(0xE000, 0xF8FF) if chr(code) not in taken)
    return Text(raw.replace("\r\n", mark), mark)


def places_of(old: str, text: str) -> Iterator[int]:
    """Where it begins, letter by letter, none overlapping the one before it."""
    at = text.find(old)
    while at >= 0:
        yield at
        at = text.find(old, at + len(old))


def meant(old: str, new: str, text: str) -> list[int]:
    """Where it may be meant: as `places_of`, and where it overlaps the first and gives another text."""
    found = list(places_of(old, text))
    for first in found[:1]:
        other = text.find(old, first + 1, first + 2 * len(old) - 1)
        if other >= 0 and text[first:other] + new != new + text[first + len(old) : other + len(old)]:
            found.insert(1, other)
    return found


def line_places(text: Text, old: Sequence[str], level: Level) -> list[Place]:
    """Where the lines stand, whole."""
    wanted, rows = _rows([level.form(line) for line in old], collapse=level.runs)
    there, spans = _rows(text.forms(level), collapse=level.runs)
    if not any(wanted):
        return []
    found: list[Place] = []
    at = -1
    while True:
        try:
            at = there.index(wanted[0], at + 1)
        except ValueError:
            return found
        if there[at : at + len(wanted)] == wanted:
            found.append(_place(rows, spans[at : at + len(wanted)]))


def _rows(forms: list[str], *, collapse: bool) -> tuple[list[str], list[range]]:
    """The forms and the lines of each; a run of blank ones is one when they collapse."""
    if not collapse:
        return forms, [range(index, index + 1) for index in range(len(forms))]
    kept: list[str] = []
    spans: list[range] = []
    for index, form in enumerate(forms):
        if kept and not form and not kept[-1]:
            spans[-1] = range(spans[-1].start, index + 1)
        else:
            kept.append(form)
            spans.append(range(index, index + 1))
    return kept, spans


def _place(rows: Sequence[range], spans: Sequence[range]) -> Place:
    made: list[tuple[int, ...]] = []
    for row, span in zip(rows, spans, strict=True):
        # Of runs of another length the first blank line stands for all.
        made += (
            [(index,) for index in span] if len(row) == len(span) else [tuple(span), *[()] * (len(row) - 1)]
        )
    return Place(tuple(made))
