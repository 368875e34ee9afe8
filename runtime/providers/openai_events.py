"""Chat completion chunks to parts: pure, JSON in, parts out. Knows no bytes on a socket.

Takes what OpenAI documents and what compatible servers make of it: reasoning under two names,
content as a list, calls in one piece, usage in any chunk, errors inside a successful stream.
"""

import json
from collections.abc import Callable, Iterable

import orjson

from runtime.errors import ProviderError, ProviderErrorKind
from runtime.model import (
    Part,
    StopPart,
    StopReason,
    TextPart,
    ThoughtPart,
    UsagePart,
)
from runtime.providers.failures import Peer, failure, stated_failure
from runtime.providers.openai_calls import CallAssembler

DONE = b"[DONE]"
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


class PartSink:
    """Collects the parts of a batch; neighbouring pieces of text become one part."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._texts: list[str] = []
        self._kind: type[TextPart] | type[ThoughtPart] = TextPart

    def text(self, kind: type[TextPart] | type[ThoughtPart], text: str) -> None:
        if kind is not self._kind:
            self._close_text()
            self._kind = kind
        self._texts.append(text)

    def add(self, part: Part) -> None:
        self._close_text()
        self._parts.append(part)

    def take(self) -> list[Part]:
        self._close_text()
        return self._parts

    def _close_text(self) -> None:
        if self._texts:
            self._parts.append(self._kind(mended("".join(self._texts))))
            self._texts = []


class ChatDecoder:
    """The state of one answer. `feed` it the data of events, then `end` it once."""

    def __init__(self, peer: Peer, new_id: Callable[[], str]) -> None:
        self._peer = peer
        self._calls = CallAssembler(new_id)
        self._usage: UsagePart | None = None
        self._reason: StopReason | None = None
        self._refused = False
        self.done = False
        """The server said that nothing comes any more."""
        self.failure: ProviderError | None = None
        """What ended the answer early; raise it when the parts before it are handed over."""

    @property
    def stopping(self) -> bool:
        """A finish reason was seen: only usage may follow."""
        return self._reason is not None

    def feed(
        self, events: Iterable[bytes], if_not_json: ProviderErrorKind = ProviderErrorKind.MALFORMED
    ) -> list[Part]:
        """Parts of these events, up to the one that set `failure`, if any."""
        sink = PartSink()
        try:
            for event in events:
                if event == DONE:
                    self.done = True
                    break
                for chunk in self._load(event):
                    self._chunk(chunk, sink)
        except ValueError:
            self.failure = failure(self._peer, if_not_json)
        except ProviderError as error:
            self.failure = error
        return sink.take()

    def end(self) -> list[Part]:
        """The last parts: calls, usage, stop. Sets `failure` when the answer is not complete."""
        calls = self._calls.finish()
        if not (self.done or self.stopping):
            self.failure = failure(self._peer, ProviderErrorKind.STREAM_DROPPED)
        elif any(not part.call.name for part in calls):
            text = "asked for a tool without naming one"
            self.failure = failure(self._peer, ProviderErrorKind.MALFORMED, sentence=text)
        if self.failure:
            return []
        usage = [self._usage] if self._usage else []
        return [*calls, *usage, StopPart(self._stop_reason())]

    def _stop_reason(self) -> StopReason:
        if self._refused:
            return "refusal"
        reason = self._reason or "end"
        if reason in ("end", "tool_calls"):
            # Several servers say "stop" beside their calls, or "tool_calls" without any.
            return "tool_calls" if self._calls else "end"
        return reason

    def _load(self, event: bytes) -> list[dict[str, object]]:
        try:
            value = orjson.loads(event)
        except orjson.JSONDecodeError:
            if b"\n" in event:  # events without the empty line between them
                return [chunk for line in event.split(b"\n") if line != DONE for chunk in self._load(line)]
            value = load_leniently(event)
        if not isinstance(value, dict):
            raise failure(self._peer, ProviderErrorKind.MALFORMED)
        return [value]

    def _chunk(self, chunk: dict[str, object], sink: PartSink) -> None:
        choices = chunk.get("choices")
        if choices and isinstance(choices, list):
            for choice in choices:
                if isinstance(choice, dict) and not choice.get("index"):
                    self._choice(choice, sink)
        usage = chunk.get("usage")
        if usage is not None:
            self._usage = _usage(usage) or self._usage
        error = chunk.get("error")
        if error or (chunk.get("object") == "error" and not choices):
            raise stated_failure(self._peer, error or chunk)

    def _choice(self, choice: dict[str, object], sink: PartSink) -> None:
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            self._delta(delta, sink)
        finish = choice.get("finish_reason")
        if not finish:
            return
        if finish == "error":
            raise stated_failure(self._peer, choice.get("error") or "")
        self._reason = FINISH.get(str(finish), "end")

    def _delta(self, delta: dict[str, object], sink: PartSink) -> None:
        thought = delta.get("reasoning_content") or delta.get("reasoning")
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
        started = self._calls.feed(call)
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
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    if cached is None:
        cached = usage.get("prompt_cache_hit_tokens")
    sizes = [_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")), _count(cached)]
    return UsagePart(*sizes) if sizes[0] or sizes[1] else None


def _count(value: object) -> int:
    return int(value) if isinstance(value, int | float) and value > 0 else 0


def load_leniently(event: bytes) -> object:
    """JSON that the strict parser refuses: half of a surrogate pair, a bad byte. Raises ValueError."""
    return json.loads(event.decode("utf-8", "replace"))


def mended(text: str) -> str:
    """The text with surrogate pairs joined and lone halves replaced, so that it can be encoded."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
