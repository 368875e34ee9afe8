"""Chat completion chunks to parts, calls put together from their pieces: pure. Knows no bytes on a socket.

Takes what OpenAI documents and what compatible servers make of it: reasoning under two names, content as a
list, calls in one piece, usage in any chunk, errors inside a successful stream. A piece of a call belongs to
an open one when its index says so and nothing speaks against it, or when its id does, or else when it names
no call of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import orjson

from runtime.providers.errors.failures import Peer, stated_failure
from runtime.providers.http.decoding import Decoder, Object, PartSink, count
from runtime.providers.http.reasoning import thought_payload
from runtime.values.model import CallPart, CallStartPart, StopReason, TextPart, ThoughtPart, UsagePart
from runtime.values.rows import ToolCall


@dataclass(slots=True)
class _OpenCall:
    slot: int
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    started: bool = False

    def text(self) -> str:
        return "".join(self.arguments)


class CallAssembler:
    """Feed it the `tool_calls` deltas; take the complete calls at the end. new_id makes missing ids."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._calls: list[_OpenCall] = []
        self._by_index: dict[int, _OpenCall] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def feed(self, delta: object) -> CallStartPart | None:
        """One element of a `tool_calls` list. Gives a part when a call's name became known."""
        if not isinstance(delta, dict):
            return None
        function = delta.get("function")
        inner = function if isinstance(function, dict) else delta
        name, ident = _text(inner.get("name")), _text(delta.get("id"))
        index = delta.get("index")
        call = self._find(index if isinstance(index, int) else None, ident, name)
        call.id = call.id or ident
        call.name = name if name.startswith(call.name) else call.name
        arguments = _arguments(inner.get("arguments"))
        if arguments:
            call.arguments.append(arguments)
        return self._start(call)

    def _start(self, call: _OpenCall) -> CallStartPart | None:
        if call.started or not call.name:
            return None
        call.started = True
        call.id = call.id or self._new_id()
        return CallStartPart(call.slot, call.id, call.name)

    def _find(self, index: int | None, ident: str, name: str) -> _OpenCall:
        call = self._candidate(index, ident, name)
        if call is None or _is_another(call, ident, name):
            call = _OpenCall(len(self._calls))
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call

    def _candidate(self, index: int | None, ident: str, name: str) -> _OpenCall | None:
        if index is not None:
            return self._by_index.get(index)
        if ident:
            same = [call for call in self._calls if call.id == ident]
            if same or name:
                return same[0] if same else None
        return self._calls[-1] if self._calls else None

    def finish(self) -> list[CallPart]:
        """All calls, complete. A call that was never named has name ''."""
        return [
            CallPart(call.slot, ToolCall(call.id or self._new_id(), call.name, call.text() or "{}"))
            for call in self._calls
        ]


def _is_another(call: _OpenCall, ident: str, name: str) -> bool:
    """Whether a piece that came under an open call's index starts a call of its own."""
    if not name or not call.name:
        return False
    if ident and call.id and ident != call.id:
        return True
    if ident and ident == call.id:
        return False
    # No id to tell by: a name after arguments that are complete is the next call's.
    return _is_object(call.text())


def _is_object(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _arguments(value: object) -> str:
    """The piece as text. Some servers send the whole object in place of a string."""
    if value is None or isinstance(value, str):
        return value or ""
    return orjson.dumps(value).decode()


REASONING = "reasoning_content"
"""The member of a message that a thought comes from. Who sends it so may want it back with the results."""
FINISH: dict[str, StopReason] = {
    "stop": "end",
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "refusal",
    "refusal": "refusal",
}
"""`finish_reason` -> stop reason; any other one is 'end'."""


class ChatDecoder(Decoder):
    """The state of one answer. new_id makes the ids that a server leaves out."""

    def __init__(self, peer: Peer, new_id: Callable[[], str]) -> None:
        super().__init__(peer)
        self._assembler = CallAssembler(new_id)
        self._thoughts: list[str] = []

    def _calls(self) -> Sequence[CallPart]:
        return self._assembler.finish()

    def _reasoning(self) -> str:
        return thought_payload(REASONING, "".join(self._thoughts))

    def _take(self, value: Object, sink: PartSink) -> None:
        choices = value.get("choices")
        if choices and isinstance(choices, list):
            for choice in choices:
                if isinstance(choice, dict) and not choice.get("index"):
                    self._choice(choice, sink)
        usage = value.get("usage")
        if usage is not None:
            self._usage = _usage(usage) or self._usage
        error = value.get("error")
        if error or (value.get("object") == "error" and not choices):
            raise stated_failure(self._peer, error or value)

    def _choice(self, choice: Object, sink: PartSink) -> None:
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            self._delta(delta, sink)
        finish = choice.get("finish_reason")
        if not finish:
            return
        if finish == "error":
            raise stated_failure(self._peer, choice.get("error") or "")
        self._reason = FINISH.get(str(finish), "end")

    def _delta(self, delta: Object, sink: PartSink) -> None:
        kept = delta.get(REASONING)
        if kept and isinstance(kept, str):
            self._thoughts.append(kept)
        thought = kept or delta.get("reasoning")
        if thought:
            sink.text(ThoughtPart, _flat(thought))
        content = delta.get("content")
        if content:
            _content(content, sink)
        refusal = delta.get("refusal")
        if refusal and isinstance(refusal, str):
            self._refused = True
            sink.text(TextPart, refusal)
        calls = delta.get("tool_calls")
        if calls and isinstance(calls, list):
            for call in calls:
                self._call(call, sink)
        legacy = delta.get("function_call")
        if legacy and isinstance(legacy, dict):
            self._call({"index": 0, "function": legacy}, sink)

    def _call(self, call: object, sink: PartSink) -> None:
        started = self._assembler.feed(call)
        if started:
            sink.add(started)


def _content(content: object, sink: PartSink) -> None:
    if isinstance(content, str):
        sink.text(TextPart, content)
    elif isinstance(content, list):
        for block in content:
            if isinstance(block, dict):
                thinking = block.get("type") == "thinking"
                sink.text(ThoughtPart if thinking else TextPart, _flat(block))


def _flat(value: object) -> str:
    """The text in a string, a block, or a list of blocks."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(map(_flat, value))
    if isinstance(value, dict):
        return _flat(value.get("text") or value.get("thinking") or "")
    return ""


def _usage(usage: object) -> UsagePart | None:
    if not isinstance(usage, dict):
        return None
    details = usage.get("prompt_tokens_details")
    told = details if isinstance(details, dict) else {}
    read, written = told.get("cached_tokens"), told.get("cache_write_tokens")
    if read is None:
        read = usage.get("prompt_cache_hit_tokens")
    totals = usage.get("prompt_tokens"), usage.get("completion_tokens")
    sizes = list(map(count, (*totals, read, written)))
    return UsagePart(*sizes) if sizes[0] or sizes[1] else None
