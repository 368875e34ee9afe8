"""Events of the Messages API to parts: pure, JSON in, parts out. Knows no bytes on a socket.

An answer that came in one piece is read as if its blocks had been streamed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from runtime.providers.anthropic.messages import REASONING
from runtime.providers.errors.failures import Peer, stated_failure
from runtime.providers.http.decoding import Decoder, Object, PartSink, count, objects, table, text
from runtime.providers.http.encoding import json_text
from runtime.providers.http.reasoning import call_mark, payload, text_mark
from runtime.values.model import CallPart, CallStartPart, StopReason, TextPart, ThoughtPart, UsagePart
from runtime.values.rows import ToolCall
from runtime.values.texts import mended

STOPS: dict[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "end",
}
"""`stop_reason` -> stop reason; any other one is 'end'.

The API pauses a turn only for tools that it runs itself, and none of those is ever offered: what was said
so far is then the answer, and the next prompt goes on from it.
"""
COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


@dataclass(slots=True)
class _Block:
    """A content block in the making. pieces: its text, thought or arguments; start: as it was announced."""

    kind: str
    start: Object
    slot: int = -1
    ident: str = ""
    pieces: list[str] = field(default_factory=list)
    signature: list[str] = field(default_factory=list)

    def whole(self) -> str:
        return mended("".join(self.pieces))


class MessagesDecoder(Decoder):
    """The state of one answer. new_id makes the ids that a server leaves out."""

    def __init__(self, peer: Peer, new_id: Callable[[], str]) -> None:
        super().__init__(peer)
        self._new_id = new_id
        self._blocks: dict[object, _Block] = {}
        self._counts: dict[str, int] = {}

    def _take(self, value: Object, sink: PartSink) -> None:
        kind = value.get("type")
        if kind == "error" or (value.get("error") and not kind):
            raise stated_failure(self._peer, value.get("error") or value)
        handle = _EVENTS.get(str(kind))
        if handle:
            self._begun = True
            handle(self, value, sink)

    def _complete(self) -> bool:
        return self.stopping or (self.done and self._begun)

    def _start_message(self, value: Object, sink: PartSink) -> None:
        self._count(table(value.get("message")))

    def _start_block(self, value: Object, sink: PartSink) -> None:
        start = table(value.get("content_block"))
        block = _Block(text(start.get("type")), start)
        self._blocks[value.get("index", len(self._blocks))] = block
        if block.kind == "tool_use":
            block.slot = sum(other.kind == "tool_use" for other in self._blocks.values()) - 1
            block.ident = text(start.get("id")) or self._new_id()
            sink.add(CallStartPart(block.slot, block.ident, text(start.get("name"))))
        elif block.kind in _SHOWN:
            self._append(block, text(start.get(block.kind)), sink)
            block.signature.append(text(start.get("signature")))

    def _go_on(self, value: Object, sink: PartSink) -> None:
        delta, block = table(value.get("delta")), self._blocks.get(value.get("index"))
        if block is None:
            return
        piece = delta.get(_DELTAS.get(str(delta.get("type")), ""))
        if delta.get("type") == "signature_delta":
            block.signature.append(text(piece))
        else:
            self._append(block, text(piece), sink)

    def _append(self, block: _Block, piece: str, sink: PartSink) -> None:
        block.pieces.append(piece)
        shown = _SHOWN.get(block.kind)
        if shown:
            sink.text(shown, piece)

    def _stop(self, value: Object, sink: PartSink) -> None:
        self._count(value)
        reason = table(value.get("delta")).get("stop_reason")
        if reason:
            self._reason = STOPS.get(str(reason), "end")

    def _end_message(self, value: Object, sink: PartSink) -> None:
        self.done = True

    def _whole(self, value: Object, sink: PartSink) -> None:
        """An answer in one piece."""
        self._count(value)
        for index, block in enumerate(objects(value.get("content"))):
            self._start_block({"index": index, "content_block": block}, sink)
        self._stop({"delta": value}, sink)

    def _count(self, value: Object) -> None:
        usage = table(value.get("usage"))
        # The last event repeats some figures, and not always the input's.
        self._counts |= {name: size for name in COUNTS if (size := count(usage.get(name)))}
        sizes = [self._counts.get(name, 0) for name in COUNTS]
        if any(sizes):
            self._usage = UsagePart(sum(sizes[:3]), sizes[3], sizes[2], sizes[1])

    def _calls(self) -> Sequence[CallPart]:
        return [
            CallPart(block.slot, ToolCall(block.ident, text(block.start.get("name")), _arguments(block)))
            for block in self._blocks.values()
            if block.kind == "tool_use"
        ]

    def _reasoning(self) -> str:
        return payload([kept for block in self._blocks.values() if (kept := _kept(block))], REASONING)


def _arguments(block: _Block) -> str:
    given = block.whole()
    if given:
        return given
    start = block.start.get("input")
    return (json_text(start) if isinstance(start, dict) else "") or "{}"


def _kept(block: _Block) -> Object | None:
    """The block as it must come back, or its place in the reply; None for one that is neither."""
    match block.kind:
        case "thinking":
            signature = "".join(block.signature)
            signed = {"signature": signature} if signature else {}
            return {"type": "thinking", "thinking": block.whole(), **signed}
        case "redacted_thinking":
            return block.start
        case "text":
            return text_mark(block.whole())
        case "tool_use":
            return call_mark()
        case _:
            return None


_SHOWN: Mapping[str, type[TextPart] | type[ThoughtPart]] = {"text": TextPart, "thinking": ThoughtPart}
_DELTAS: Mapping[str, str] = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""A delta's type -> the member that holds its piece."""
_EVENTS: Mapping[str, Callable[[MessagesDecoder, Object, PartSink], None]] = {
    "message_start": MessagesDecoder._start_message,
    "content_block_start": MessagesDecoder._start_block,
    "content_block_delta": MessagesDecoder._go_on,
    "message_delta": MessagesDecoder._stop,
    "message_stop": MessagesDecoder._end_message,
    "message": MessagesDecoder._whole,
}
"""All others say nothing that is needed: pings, the ends of blocks."""
