"""The tool rounds of a turn in its rows, a turn without some of them, and rounds as a trimmer sees them.

A round is an assistant row with calls and the rows of their results: whole rounds go, so pairs stay whole.
Knows no trimmer and no limit.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from runtime.history.rows.boundaries import TOOL_RESULTS_PREFIX
from runtime.history.rows.estimate import ROW_TOKENS, call_json
from runtime.history.rows.token_counter import HEURISTIC
from runtime.values.model import UsagePart
from runtime.values.rows import Row, ToolCall

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


@dataclass(frozen=True, slots=True)
class IterationCall:
    """A call. id: unique in the turn. input: its arguments as an object."""

    id: str
    name: str
    input: Mapping[str, object]
    arguments: str = ""
    """The arguments as the model wrote them."""


@dataclass(frozen=True, slots=True)
class IterationResult:
    """What a call gave, as the model reads it. id: of the call."""

    id: str
    output: str


@dataclass(frozen=True, slots=True)
class Iteration:
    """One round: calls and their results, which stay or go together.

    text: what the model said along with the calls. tokens: what the round costs in a request, as the session
    counts it; None: not counted, see `iteration_tokens`.
    """

    tool_calls: tuple[IterationCall, ...]
    tool_results: tuple[IterationResult, ...]
    text: str = ""
    tokens: int | None = None

    def with_outputs(self, outputs: Sequence[str]) -> "Iteration":
        """The round with other texts in its results, in their order; ids and names stay."""
        results = zip(self.tool_results, outputs, strict=True)
        told = tuple(replace(result, output=output) for result, output in results)
        return replace(self, tool_results=told, tokens=None)


def iteration_tokens(iteration: Iteration) -> int:
    """What a round costs in a request, tokens: as counted, else estimated."""
    if iteration.tokens is not None:
        return iteration.tokens
    calls = (call_json(ToolCall(call.id, call.name, call.arguments)) for call in iteration.tool_calls)
    reply = HEURISTIC.count(iteration.text, *calls) + ROW_TOKENS
    return reply + sum(HEURISTIC.count(result.output) + ROW_TOKENS for result in iteration.tool_results)


@dataclass(frozen=True, slots=True)
class TrimView:
    """What a trimmer makes of a history, which it leaves as it is.

    trimmed: it differs. persist: it is what later passes start from; else it serves one provider call, and
    the next pass gets all rounds again. summary: the text that stands for what went. failure: why nothing was
    trimmed although it should be, a sentence for the person. usage: what a model was asked for it, by route
    id.
    """

    history: Sequence[Iteration]
    trimmed: bool
    persist: bool = False
    summary: str = ""
    failure: str = ""
    usage: tuple[str, UsagePart] | None = None
