"""Ollama's chat API, bytes to parts: lines of JSON, one object each, and what they say. Pure; no socket.

Calls come whole, mostly without ids. `prompt_eval_count` is what the model really read: far fewer tokens than
were sent means that the server cut the prompt.
"""

from collections.abc import Callable, Sequence

from runtime.providers.errors.failures import Peer, failure, stated_failure
from runtime.providers.http.decoding import Decoder, Object, PartSink, count, objects, table, text
from runtime.providers.http.encoding import json_text
from runtime.providers.http.event_stream import ReplyReader, SseSplitter
from runtime.providers.http.reasoning import thought_payload
from runtime.values.errors import ProviderErrorKind
from runtime.values.model import CallPart, CallStartPart, Part, StopReason, TextPart, ThoughtPart, UsagePart
from runtime.values.rows import ToolCall

THINKING = "thinking"
"""The member of a message that a thought comes from, and goes back in."""
STOPS: dict[str, StopReason] = {"stop": "end", "length": "length"}
"""`done_reason` -> stop reason; any other one is 'end', but for these."""
_NOTHING_SAID = frozenset({"load", "unload"})
"""The model was loaded or thrown out, and not asked."""


class OllamaDecoder(Decoder):
    """The state of one answer. new_id makes the ids that a server leaves out."""

    def __init__(self, peer: Peer, new_id: Callable[[], str]) -> None:
        super().__init__(peer)
        self._new_id = new_id
        self._asked: list[ToolCall] = []
        self._thoughts: list[str] = []

    def _take(self, value: Object, sink: PartSink) -> None:
        error = value.get("error")
        if error:
            raise stated_failure(self._peer, error)
        self._begun = self._begun or "message" in value or "done" in value
        self._message(table(value.get("message")), sink)
        if value.get("done") is True:
            self._stop(value)

    def _message(self, message: Object, sink: PartSink) -> None:
        thought = text(message.get(THINKING))
        if thought:
            self._thoughts.append(thought)
            sink.text(ThoughtPart, thought)
        sink.text(TextPart, text(message.get("content")))
        for call in objects(message.get("tool_calls")):
            self._call(call, sink)

    def _call(self, call: Object, sink: PartSink) -> None:
        function = table(call.get("function"))
        name = text(function.get("name"))
        made = ToolCall(text(call.get("id")) or self._new_id(), name, _arguments(function.get("arguments")))
        if name:
            sink.add(CallStartPart(len(self._asked), made.id, name))
        self._asked.append(made)

    def _stop(self, value: Object) -> None:
        reason = text(value.get("done_reason"))
        if reason in _NOTHING_SAID:
            sentence = "only loaded the model and gave no answer"
            raise failure(self._peer, ProviderErrorKind.STREAM_DROPPED, sentence=sentence)
        sizes = count(value.get("prompt_eval_count")), count(value.get("eval_count"))
        if any(sizes):
            self._usage = UsagePart(*sizes)
        self._reason = STOPS.get(reason, "end")
        self.done = True

    def _calls(self) -> Sequence[CallPart]:
        return [CallPart(index, call) for index, call in enumerate(self._asked)]

    def _complete(self) -> bool:
        return self.stopping

    def _reasoning(self) -> str:
        return thought_payload(THINKING, "".join(self._thoughts))


def _arguments(value: object) -> str:
    """The arguments as text. Some models' come as text already."""
    if isinstance(value, str):
        return value or "{}"
    return "{}" if value is None else json_text(value) or "{}"


class LineSplitter(SseSplitter):
    """Feed it what was read; it gives back the lines that are complete. Empty ones are passed over."""

    def _events(self, lines: list[bytes]) -> list[bytes]:
        return [line for line in lines if line and not line.isspace()]


class LineReader(ReplyReader):
    """One answer with status 200 in lines; an answer in one piece is one line."""

    def __init__(self, peer: Peer, decoder: Decoder) -> None:
        super().__init__(peer, decoder)
        self._splitter = LineSplitter()

    def _read(self, data: bytes) -> list[Part]:
        if not self._started:
            data = data.lstrip()
            self._started = bool(data)
            if data[:1] not in (b"", b"{"):
                self._decoder.failure = failure(self._peer, ProviderErrorKind.MALFORMED)
                return []
        return super()._read(data) if data else []
