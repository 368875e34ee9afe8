"""Chat completion chunks to parts: pure, JSON in, parts out. Knows no bytes on a socket.

Takes what OpenAI documents and what compatible servers make of it: reasoning under two names,
content as a list, calls in one piece, usage in any chunk, errors inside a successful stream.
"""

from collections.abc import Callable, Sequence

from runtime.model import (
    CallPart,
    StopReason,
    TextPart,
    ThoughtPart,
    UsagePart,
)
from runtime.providers.decoding import Decoder, Object, PartSink, count
from runtime.providers.failures import Peer, stated_failure
from runtime.providers.layout import thought_payload
from runtime.providers.openai_calls import CallAssembler

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
