"""Events of the Responses API to parts: pure, JSON in, parts out. Knows no bytes on a socket.

The output is a list of items, each announced, streamed and closed. Servers differ in how much of that they
do, so whatever a closed item or the whole response holds beyond what was streamed is taken from there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from runtime.providers.errors.failures import Peer, stated_failure
from runtime.providers.http.decoding import Decoder, Object, PartSink, count, objects, table, text
from runtime.providers.http.reasoning import call_mark, payload, text_mark
from runtime.providers.openai_responses.request import REASONING
from runtime.values.model import CallPart, CallStartPart, StopReason, TextPart, ThoughtPart, UsagePart
from runtime.values.rows import ToolCall
from runtime.values.texts import mended

INCOMPLETE: dict[str, StopReason] = {"max_output_tokens": "length", "content_filter": "refusal"}
"""`incomplete_details.reason` -> stop reason; any other one is 'length'."""
KEPT = ("type", "id", "summary", "content", "encrypted_content")
"""What comes back of a reasoning item; servers refuse members that they only send."""


@dataclass(slots=True)
class _Item:
    """An output item in the making. pieces: its text or arguments; thoughts: parts of a summary so far."""

    kind: str
    slot: int = -1
    call_id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    thoughts: int = 0
    whole: Object = field(default_factory=dict)

    def text(self) -> str:
        return "".join(self.pieces)


class ResponsesDecoder(Decoder):
    """The state of one answer. new_id makes the ids that a server leaves out."""

    def __init__(self, peer: Peer, new_id: Callable[[], str]) -> None:
        super().__init__(peer)
        self._new_id = new_id
        self._items: dict[object, _Item] = {}

    def _take(self, value: Object, sink: PartSink) -> None:
        kind = str(value.get("type") or "")
        if kind == "error" or (value.get("error") and not kind and value.get("object") != "response"):
            raise stated_failure(self._peer, value.get("error") or _untyped(value))
        handle = _EVENTS.get(kind)
        if handle:
            self._begun = True
            handle(self, value, sink)
        elif value.get("object") == "response":
            self._end_response({"response": value}, sink)

    def _complete(self) -> bool:
        return self.stopping

    def _item(self, value: Object, kind: str) -> _Item:
        """The item that an event is about; one that was never announced begins with it."""
        told = table(value.get("item"))
        keys = value.get("output_index"), value.get("item_id"), told.get("id"), told.get("call_id")
        key = next((key for key in keys if isinstance(key, int | str)), None)
        if key not in self._items:
            self._items[key] = _Item(kind)
        return self._items[key]

    def _open(self, value: Object, sink: PartSink) -> None:
        item = table(value.get("item"))
        self._begin(self._item(value, text(item.get("type"))), item, sink)

    def _begin(self, item: _Item, told: Object, sink: PartSink) -> None:
        if item.kind == "function_call" and item.slot < 0:
            item.slot = sum(other.slot >= 0 for other in self._items.values())
            item.call_id = text(told.get("call_id")) or text(told.get("id")) or self._new_id()
            item.name = text(told.get("name"))
            sink.add(CallStartPart(item.slot, item.call_id, item.name))

    def _close(self, value: Object, sink: PartSink) -> None:
        told = table(value.get("item"))
        item = self._item(value, text(told.get("type")))
        item.whole = told
        self._begin(item, told, sink)
        if item.kind == "function_call":
            self._set(item, text(told.get("arguments")))
        elif item.kind == "message":
            self._rest(item, told, sink)
        elif item.kind == "reasoning" and not item.thoughts:
            for part in objects(told.get("summary")) or objects(told.get("content")):
                self._new_thought(item, sink)
                sink.text(ThoughtPart, text(part.get("text")))

    def _rest(self, item: _Item, told: Object, sink: PartSink) -> None:
        """What a message says beyond what was streamed of it."""
        content = objects(told.get("content"))
        self._refused = self._refused or any(part.get("type") == "refusal" for part in content)
        said = "".join(text(part.get("text")) or text(part.get("refusal")) for part in content)
        if not item.pieces:
            item.pieces.append(said)
            sink.text(TextPart, said)

    def _say(self, value: Object, sink: PartSink) -> None:
        piece = text(value.get("delta"))
        self._item(value, "message").pieces.append(piece)
        sink.text(TextPart, piece)

    def _refuse(self, value: Object, sink: PartSink) -> None:
        self._refused = True
        self._say(value, sink)

    def _think(self, value: Object, sink: PartSink) -> None:
        item = self._item(value, "reasoning")
        item.thoughts = item.thoughts or 1
        sink.text(ThoughtPart, text(value.get("delta")))

    def _next_thought(self, value: Object, sink: PartSink) -> None:
        self._new_thought(self._item(value, "reasoning"), sink)

    def _new_thought(self, item: _Item, sink: PartSink) -> None:
        """A summary comes in paragraphs, each without its line ends."""
        if item.thoughts:
            sink.text(ThoughtPart, "\n\n")
        item.thoughts += 1

    def _argue(self, value: Object, sink: PartSink) -> None:
        self._item(value, "function_call").pieces.append(text(value.get("delta")))

    def _argued(self, value: Object, sink: PartSink) -> None:
        self._set(self._item(value, "function_call"), text(value.get("arguments")))

    def _set(self, item: _Item, arguments: str) -> None:
        if arguments:
            item.pieces = [arguments]

    def _end_response(self, value: Object, sink: PartSink) -> None:
        response = table(value.get("response"))
        if response.get("error") or response.get("status") == "failed":
            raise stated_failure(self._peer, response.get("error") or "")
        streamed = bool(self._items)
        for index, item in enumerate(() if streamed else objects(response.get("output"))):
            self._close({"output_index": index, "item": item}, sink)
        self._usage = _usage(table(response.get("usage"))) or self._usage
        reason = text(table(response.get("incomplete_details")).get("reason"))
        cut = reason or response.get("status") == "incomplete"
        self._reason = INCOMPLETE.get(reason, "length") if cut else "end"
        self.done = True

    def _calls(self) -> Sequence[CallPart]:
        return [
            CallPart(item.slot, ToolCall(item.call_id, item.name, mended(item.text()) or "{}"))
            for item in self._items.values()
            if item.kind == "function_call"
        ]

    def _reasoning(self) -> str:
        return payload([kept for item in self._items.values() if (kept := _kept(item))], REASONING)


def _kept(item: _Item) -> Object | None:
    """The item as it must come back, or its place in the reply; None for one that is neither."""
    match item.kind:
        case "reasoning":
            kept = {key: item.whole[key] for key in KEPT if item.whole.get(key) is not None}
            # Without its content it is but a name for something that was not stored.
            return kept if kept.get("encrypted_content") or kept.get("content") else None
        case "message":
            return text_mark(item.text())
        case "function_call":
            return call_mark()
        case _:
            return None


def _untyped(value: Object) -> Object:
    return {key: inner for key, inner in value.items() if key != "type"}


def _usage(usage: Object) -> UsagePart | None:
    told = table(usage.get("input_tokens_details"))
    cached = told.get("cached_tokens"), told.get("cache_write_tokens")
    sizes = list(map(count, (usage.get("input_tokens"), usage.get("output_tokens"), *cached)))
    return UsagePart(*sizes) if sizes[0] or sizes[1] else None


_EVENTS: Mapping[str, Callable[[ResponsesDecoder, Object, PartSink], None]] = {
    "response.output_item.added": ResponsesDecoder._open,
    "response.output_item.done": ResponsesDecoder._close,
    "response.output_text.delta": ResponsesDecoder._say,
    "response.refusal.delta": ResponsesDecoder._refuse,
    "response.reasoning_summary_part.added": ResponsesDecoder._next_thought,
    "response.reasoning_summary_text.delta": ResponsesDecoder._think,
    "response.reasoning_text.delta": ResponsesDecoder._think,
    "response.function_call_arguments.delta": ResponsesDecoder._argue,
    "response.function_call_arguments.done": ResponsesDecoder._argued,
    "response.completed": ResponsesDecoder._end_response,
    "response.incomplete": ResponsesDecoder._end_response,
    "response.failed": ResponsesDecoder._end_response,
}
"""All others say nothing that is needed, or say it again."""
