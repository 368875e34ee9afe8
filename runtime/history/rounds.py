"""The tool rounds of a turn in its rows, and a turn without some of them. Knows no trimmer and no limit.

A round is an assistant row with calls and the rows of their results: whole rounds go, so pairs stay whole.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from runtime.history.boundaries import TOOL_RESULTS_PREFIX
from runtime.rows import Row

OMITTED = "[{count} earlier tool rounds of this turn omitted]"
OMITTED_ONE = "[1 earlier tool round of this turn omitted]"

Output = tuple[int, int, str]
"""Round, place of the result in it, the text in its place."""
Span = tuple[int, int]
"""From the first to the last, both included."""


@dataclass(frozen=True, slots=True)
class Round:
    """Rows from `start` up to, not including, `end`: the reply, then its results."""

    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start


def tool_rounds(rows: Sequence[Row]) -> list[Round]:
    """The rounds of a turn's rows, oldest first; the first row is the prompt."""
    rounds: list[Round] = []
    index = 1
    while index < len(rows):
        end = index + 1
        while end < len(rows) and _answers(rows[index], rows[end], end - index):
            end += 1
        if end > index + 1:
            rounds.append(Round(index, end))
        index = end
    return rounds


def _answers(reply: Row, row: Row, distance: int) -> bool:
    if reply.role != "assistant":
        return False
    if reply.tool_calls:
        return row.role == "tool"
    # Calls that stand in the text: all results are one row of ours.
    ours = row.role == "user" and row.origin == "runtime"
    return distance == 1 and ours and row.content.startswith(TOOL_RESULTS_PREFIX)


def spans(numbers: Iterable[int]) -> tuple[Span, ...]:
    """Ascending numbers, runs of them as one span each."""
    found: list[Span] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return tuple(found)


def numbers(found: Iterable[Span]) -> Iterator[int]:
    """The numbers of spans."""
    for first, last in found:
        yield from range(first, last + 1)


@dataclass(frozen=True, slots=True)
class LoopChange:
    """What one pass of a trimmer decided for the newest turn: the rounds that stay, and texts that change.

    persist: the turn's rows are changed for good, not only what requests show of them.
    """

    kept: tuple[Span, ...]
    outputs: tuple[Output, ...] = ()
    persist: bool = False


@dataclass(frozen=True, slots=True)
class LoopView:
    """What requests leave out of the running turn. hidden: rounds of its rows; folded: how many are gone."""

    hidden: frozenset[int] = frozenset()
    outputs: tuple[Output, ...] = ()
    folded: int = 0

    @property
    def omitted(self) -> int:
        """How many rounds the model does not see."""
        return self.folded + len(self.hidden)

    def line(self) -> str:
        """What the model is told, '' for nothing."""
        if not self.omitted:
            return ""
        return OMITTED_ONE if self.omitted == 1 else OMITTED.format(count=self.omitted)


def without_rounds(rows: Sequence[Row], gone: frozenset[int], outputs: Iterable[Output]) -> list[Row]:
    """The rows without those rounds, with other texts in some results."""
    rounds = tool_rounds(rows)
    left_out = {at for number in gone for at in range(rounds[number].start, rounds[number].end)}
    known = (output for output in outputs if output[0] < len(rounds))
    texts = {rounds[number].start + 1 + place: text for number, place, text in known}
    return [
        with_output(row, texts[at]) if at in texts else row
        for at, row in enumerate(rows)
        if at not in left_out
    ]


def with_output(row: Row, text: str) -> Row:
    """A result's row with another text, its id and pairing kept."""
    if row.role != "tool":
        text = f"{TOOL_RESULTS_PREFIX}\n{text}"
    return replace(row, content=text, attachments=())


def viewed_rows(rows: Sequence[Row], view: LoopView) -> list[Row]:
    """The turn's rows as a request shows them; the prompt says how many rounds are left out."""
    shown = without_rounds(rows, view.hidden, view.outputs)
    line = view.line()
    if line:
        shown[0] = replace(shown[0], content=f"{shown[0].content}\n{line}")
    return shown


def changed_rows(rows: Sequence[Row], change: LoopChange) -> list[Row]:
    """The rows after a pass that changes them for good; as they are for any other."""
    if not change.persist:
        return list(rows)
    gone = frozenset(range(len(tool_rounds(rows)))).difference(numbers(change.kept))
    return without_rounds(rows, gone, change.outputs)
