"""A request as the bytes of a Messages API body: pure. Knows no HTTP.

A head with all that stays the same (model, options, tools), the system text, the messages as kept on their
segments, and at the end what may change from call to call: the output limit and the thinking budget.

Cache breakpoints, four at most: the last tool, the system text, the end of the newest complete turn, the
end of the request. When the oldest turns are left out, tools and system text are still found in the cache;
while a turn runs, each call finds all of the one before.

Thinking is asked for only when the running turn's first call came with it, as the API insists; a turn that
began without goes on without. A request that offers no tool although calls stand in it names these tools
again and forbids their use, since calls of tools that are not there are refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runtime.providers.anthropic.messages import MARK, has_calls, joined, speaks, system_blocks
from runtime.providers.http.encoding import dumps, fitting_name, is_blank, raw
from runtime.values.model import ModelRequest, Segment
from runtime.values.rows import Row, ToolSpec

OWN_MEMBERS = frozenset({"model", "messages", "stream", "system", "tools", "tool_choice", "max_tokens"})
"""Members of the body that no option may set."""
MAX_TOKENS = 4096
"""The output limit when none is configured: the API wants one."""
LEAST_THINKING = 1024
"""Tokens. The API takes no smaller budget."""


@dataclass(frozen=True, slots=True)
class BodyShape:
    """What the settings say of the body. thinking_budget: tokens, 0 = not asked for.

    max_tokens: for the answer itself, when the request has no limit. extra: more members.
    """

    max_tokens: int = MAX_TOKENS
    thinking_budget: int = 0
    prompt_cache: bool = True
    extra: Mapping[str, object] | None = None


class BodyWriter:
    """Writes bodies of one shape and keeps the head of the last one."""

    def __init__(self, shape: BodyShape) -> None:
        self._shape = shape
        self._head = b""
        self._head_of: tuple[str, tuple[ToolSpec, ...]] | None = None

    def body(self, request: ModelRequest) -> bytes:
        """The body. Rows of a segment that was sent before are not encoded again."""
        shape, segments = self._shape, request.segments
        start = _newest_turn(segments)
        limit, thinking = _limits(shape, request, segments[start:])
        marked = _breakpoints(segments, start) if shape.prompt_cache else frozenset[int]()
        messages = joined(segments, marked, reasoning=bool(thinking) or not shape.thinking_budget)
        tail = b'],"max_tokens":%d' % limit
        if thinking:
            tail += b',"thinking":{"type":"enabled","budget_tokens":%d}' % thinking
        head = self._known_head(request)
        return b"".join((head, self._system(segments), b',"messages":[', *messages, tail, b"}"))

    def _known_head(self, request: ModelRequest) -> bytes:
        if not request.tools and any(map(has_calls, request.segments)):
            return self._made_head(request.model, _named(request.segments), b',"tool_choice":{"type":"none"}')
        head_of = (request.model, request.tools)
        if self._head_of != head_of:
            self._head = self._made_head(request.model, list(map(_tool, request.tools)))
            self._head_of = head_of
        return self._head

    def _made_head(self, model: str, tools: list[bytes], choice: bytes = b"") -> bytes:
        head = dumps({"model": model, "stream": True, **(self._shape.extra or {})})[:-1]
        return (
            b"".join((head, b',"tools":[', self._marked(b",".join(tools)), b"]", choice)) if tools else head
        )

    def _system(self, segments: Sequence[Segment]) -> bytes:
        blocks = system_blocks(segments)
        return b',"system":[%b]' % self._marked(blocks) if blocks else b""

    def _marked(self, objects: bytes) -> bytes:
        return objects[:-1] + MARK if self._shape.prompt_cache else objects


def _tool(tool: ToolSpec) -> bytes:
    told = {} if is_blank(tool.description) else {"description": tool.description}
    return dumps({"name": fitting_name(tool.name), **told, "input_schema": raw(tool.parameters)})


def _named(segments: Sequence[Segment]) -> list[bytes]:
    """The tools that the calls name, with no more than a name."""
    rows = (row for segment in filter(has_calls, segments) for row in segment.rows)
    names = dict.fromkeys(fitting_name(call.name) for row in rows for call in row.tool_calls)
    return [dumps({"name": name, "input_schema": {"type": "object"}}) for name in names]


def _newest_turn(segments: Sequence[Segment]) -> int:
    """The number of the segment that opens the newest turn; 0 when none does."""
    numbers = reversed(range(len(segments)))
    return next((number for number in numbers if _opens_turn(segments[number].rows[:1])), 0)


def _opens_turn(first: tuple[Row, ...]) -> bool:
    return bool(first) and first[0].role == "user" and first[0].origin != "runtime"


def _breakpoints(segments: Sequence[Segment], start: int) -> frozenset[int]:
    """The segments behind which the cache is kept: the newest complete turn's last, and the last of all."""
    spoken = [number for number, segment in enumerate(segments) if speaks(segment)]
    complete = [number for number in spoken if number < start]
    return frozenset((*complete[-1:], *spoken[-1:]))


def _limits(shape: BodyShape, request: ModelRequest, turn: Sequence[Segment]) -> tuple[int, int]:
    """The output limit and the part of it that is for thinking, 0 for none; a quarter is the answer's."""
    limit = request.max_output_tokens or shape.max_tokens + shape.thinking_budget
    budget = min(shape.thinking_budget, limit - limit // 4)
    first = next((row for segment in turn for row in segment.rows if row.tool_calls), None)
    began_without = first is not None and not first.reasoning
    return limit, 0 if began_without or budget < LEAST_THINKING else budget
