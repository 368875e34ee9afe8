"""What all adapters share in reading an answer: from the data of events to parts. Pure; knows no API.

An adapter's decoder says what one JSON object of its API means; this says what an answer is.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import orjson

from runtime.providers.errors.failures import Peer, failure
from runtime.values.errors import ProviderError, ProviderErrorKind
from runtime.values.model import (
    CallPart,
    Part,
    ReasoningPart,
    StopPart,
    StopReason,
    TextPart,
    ThoughtPart,
    UsagePart,
)
from runtime.values.texts import mended

DONE = b"[DONE]"
MOST_TOKENS = 10**8
"""A count above it is no count: believed once, it would make every later request look too large."""
Object = dict[str, object]


class PartSink:
    """Collects the parts of a batch; neighbouring pieces of text become one part."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._texts: list[str] = []
        self._kind: type[TextPart] | type[ThoughtPart] = TextPart

    def text(self, kind: type[TextPart] | type[ThoughtPart], text: str) -> None:
        """A piece of the answer or of a thought."""
        if kind is not self._kind:
            self._close_text()
            self._kind = kind
        if text:
            self._texts.append(text)

    def add(self, part: Part) -> None:
        """Any other part."""
        self._close_text()
        self._parts.append(part)

    def take(self) -> list[Part]:
        """All of it."""
        self._close_text()
        return self._parts

    def _close_text(self) -> None:
        if self._texts:
            self._parts.append(self._kind(mended("".join(self._texts))))
            self._texts = []


class Decoder(ABC):
    """The state of one answer. `feed` it the data of events, then `end` it once."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._usage: UsagePart | None = None
        self._reason: StopReason | None = None
        self._refused = False
        self._begun = False
        self.done = False
        """The server said that nothing comes any more."""
        self.failure: ProviderError | None = None
        """What ended the answer early; raise it when the parts before it are handed over."""

    @property
    def stopping(self) -> bool:
        """The answer itself is complete; only figures may follow."""
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
                for value in () if self.done else self._load(event):
                    self._take(value, sink)
        except (ValueError, RecursionError):
            self.failure = failure(self._peer, if_not_json)
        except ProviderError as error:
            self.failure = error
        return sink.take()

    def end(self) -> list[Part]:
        """The last parts: calls, reasoning, usage, stop. Sets `failure` when the answer is not complete."""
        calls = self._calls()
        if not self._complete():
            foreign = self.done and not self._begun
            kind = ProviderErrorKind.MALFORMED if foreign else ProviderErrorKind.STREAM_DROPPED
            self.failure = failure(self._peer, kind)
        elif any(not part.call.name for part in calls):
            text = "asked for a tool without naming one"
            self.failure = failure(self._peer, ProviderErrorKind.MALFORMED, sentence=text)
        if self.failure:
            return []
        reasoning = self._reasoning() if calls else ""
        kept = [ReasoningPart(reasoning)] if reasoning else []
        usage = [self._usage] if self._usage else []
        return [*calls, *kept, *usage, StopPart(self._stop_reason(bool(calls)))]

    @abstractmethod
    def _take(self, value: Object, sink: PartSink) -> None:
        """One event. Raises ProviderError."""

    @abstractmethod
    def _calls(self) -> Sequence[CallPart]:
        """All calls. A call that was never named has name ''."""

    def _reasoning(self) -> str:
        """What must come back with these calls, as the adapter reads it; '' for nothing."""
        return ""

    def _complete(self) -> bool:
        return self.done or self.stopping

    def _stop_reason(self, calls: bool) -> StopReason:
        if self._refused:
            return "refusal"
        reason = self._reason or "end"
        if reason in ("end", "tool_calls"):
            # Several servers say "stop" beside their calls, or "tool_calls" without any.
            return "tool_calls" if calls else "end"
        return reason

    def _load(self, event: bytes) -> list[Object]:
        try:
            value = orjson.loads(event)
        except orjson.JSONDecodeError:
            if b"\n" in event:  # events without the empty line between them
                return [chunk for line in event.split(b"\n") if line != DONE for chunk in self._load(line)]
            value = _load_leniently(event)
        if not isinstance(value, dict):
            raise failure(self._peer, ProviderErrorKind.MALFORMED)
        return [value]


def _load_leniently(event: bytes) -> object:
    """JSON that the strict parser refuses: half of a surrogate pair, a bad byte.

    Raises ValueError, and RecursionError where it is nested too deep.
    """
    return json.loads(event.decode("utf-8", "replace"))


def count(value: object) -> int:
    """A number of tokens as a server states it; 0 for none, and for one that cannot be."""
    return int(value) if isinstance(value, int | float) and 0 < value <= MOST_TOKENS else 0


def text(value: object) -> str:
    """The value if it is text, else ''."""
    return value if isinstance(value, str) else ""


def table(value: object) -> Object:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[Object]:
    """The objects in a list; none when it is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
