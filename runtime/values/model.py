"""What is sent to a model (segments of rows), what comes back (parts), what it costs. Pure values."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from runtime.values.rows import Row, ToolCall, ToolSpec

StopReason = Literal["end", "tool_calls", "length", "refusal"]


@dataclass(frozen=True, slots=True)
class TextPart:
    """A piece of the visible answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ThoughtPart:
    """A piece of reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStartPart:
    """The model began to name a call; `index` tells parallel calls apart until they are complete."""

    index: int
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class CallPart:
    """A complete call. Always sent once per call, also when no CallStartPart came before."""

    index: int
    call: ToolCall


@dataclass(frozen=True, slots=True)
class ReasoningPart:
    """Reasoning that the provider wants back, unchanged, with the results of this reply's calls.

    payload: JSON of the adapter's own, opaque to everyone else. At most one a reply, after its calls.
    """

    payload: str


@dataclass(frozen=True, slots=True)
class UsagePart:
    """Tokens as the provider counted them; input includes what came out of its cache and what went into
    it.
    """

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    cache_write_tokens: int = 0


@dataclass(frozen=True, slots=True)
class StopPart:
    """Why the answer ended. A stream that ends without one was dropped: the adapter raises."""

    reason: StopReason


Part = TextPart | ThoughtPart | CallStartPart | CallPart | ReasoningPart | UsagePart | StopPart


@dataclass(slots=True)
class Segment:
    """A run of rows that is sent as one piece; `encoded` keeps its wire bytes per adapter codec name.

    Rows of a segment never change once it is part of a request, so the bytes stay stable and are
    made once: the sent prefix is byte-identical from request to request.
    """

    rows: tuple[Row, ...]
    encoded: dict[str, bytes] = field(default_factory=dict)


async def at_once() -> None:
    """Nothing has to be waited for."""


def nothing() -> None:
    """There is nothing to do meanwhile."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One provider call. segments: in order, system rows first.

    max_output_tokens: None leaves it to the provider. ready: returns when all that the request rests on is
    durable; a provider may prepare before, and lets no byte leave earlier. sent: called when it has left, for
    what can be done while the model works; a provider need not call it.
    """

    model: str
    segments: tuple[Segment, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_output_tokens: int | None = None
    ready: Callable[[], Awaitable[None]] = field(default=at_once, compare=False, repr=False)
    sent: Callable[[], object] = field(default=nothing, compare=False, repr=False)

    def rows(self) -> list[Row]:
        """All rows in order, for checks and logs."""
        return [row for segment in self.segments for row in segment.rows]


MILLION = 1_000_000


class Cost(NamedTuple):
    """An amount of money. currency: ISO 4217, or another unit."""

    amount: float
    currency: str


class Price(NamedTuple):
    """Money for a million tokens. cached_read, cached_write: of the input that came out of the provider's
    cache or went into it; None costs what other input costs. currency: ISO 4217, or another unit.
    """

    input: float = 0.0
    output: float = 0.0
    cached_read: float | None = None
    cached_write: float | None = None
    currency: str = "USD"

    def of(
        self, *, input_tokens: int, output_tokens: int, cached_read: int = 0, cached_write: int = 0
    ) -> float:
        """The cost of one call. input_tokens: all of the input, what was cached included."""
        read = self.input if self.cached_read is None else self.cached_read
        write = self.input if self.cached_write is None else self.cached_write
        fresh = max(input_tokens - cached_read - cached_write, 0)
        spent = fresh * self.input + cached_read * read + cached_write * write + output_tokens * self.output
        return spent / MILLION
