"""The rounds of a running turn's tool loop as a context trimmer sees them. Pure values; knows no row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from runtime.history.counter import HEURISTIC
from runtime.history.estimate import ROW_TOKENS, call_json
from runtime.model import UsagePart
from runtime.rows import ToolCall


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
