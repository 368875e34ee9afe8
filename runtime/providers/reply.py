"""From the bytes of an answer to parts: a stream of events or one JSON body.

Pure; ties the event splitter to an adapter's decoder. Knows no socket and no API.
"""

from runtime.errors import ProviderError, ProviderErrorKind
from runtime.model import (
    Part,
    TextPart,
    ThoughtPart,
)
from runtime.providers.decoding import Decoder
from runtime.providers.failures import Peer, failure
from runtime.providers.sse import MAX_EVENT_BYTES, EventTooLarge, SseSplitter

_BLANK = b" \t\r\n\xef\xbb\xbf"
MAX_ANSWER_BYTES = 256 * 1024 * 1024
"""Of an answer's body, unpacked: some hundred times what any model gives. One that never ends is ended."""
MAX_ANSWER_TEXT = 32 * 1024 * 1024
"""Characters of answer and thought."""
_FIRST_BYTES = b"{:deir"  # one JSON object; a comment, data, event, id, retry


class ReplyReader:
    """One answer with status 200. `feed` it bytes as they come, then `end` it once.

    What the body is shows in its first byte: a `{` is an answer in one piece, from a server that
    does not stream; a comment or a field of an event is a stream; all else is no answer of such an API.
    After each call `failure` says whether the answer ended early; the parts that the call gave came
    before that.
    """

    def __init__(self, peer: Peer, decoder: Decoder) -> None:
        self._peer = peer
        self._decoder = decoder
        self._splitter = SseSplitter()
        self._body: list[bytes] | None = None
        self._body_bytes = 0
        self._started = False
        self._bytes = 0
        self._text = 0

    @property
    def done(self) -> bool:
        """The server said that the answer is complete."""
        return self._decoder.done

    @property
    def stopping(self) -> bool:
        """The answer itself is complete; only figures may follow."""
        return self._decoder.stopping

    @property
    def failure(self) -> ProviderError | None:
        """What is wrong with the answer, if anything."""
        return self._decoder.failure

    def feed(self, data: bytes) -> list[Part]:
        """All parts that these bytes complete, neighbouring text merged."""
        parts = self._read(data)
        self._bytes += len(data)
        self._text += sum(len(part.text) for part in parts if isinstance(part, TextPart | ThoughtPart))
        endless = self._bytes > MAX_ANSWER_BYTES or self._text > MAX_ANSWER_TEXT
        if endless and not (self.done or self.failure):
            text = "sent more than any answer is long; what had come by then was kept"
            self._decoder.failure = failure(self._peer, ProviderErrorKind.MALFORMED, sentence=text)
        return parts

    def _read(self, data: bytes) -> list[Part]:
        if not self._started:
            data = data.lstrip(_BLANK)
            if not data:
                return []
            self._started = True
            self._body = [] if data[:1] == b"{" else None
            if data[0] not in _FIRST_BYTES:
                self._decoder.failure = failure(self._peer, ProviderErrorKind.MALFORMED)
                return []
        try:
            return self._gather(data) if self._body is not None else self._events(self._splitter.feed(data))
        except EventTooLarge:
            self._decoder.failure = failure(self._peer, ProviderErrorKind.MALFORMED)
            return []

    def end(self) -> list[Part]:
        """The parts that only the end of the body completes; the last one is the stop."""
        cut_off = ProviderErrorKind.STREAM_DROPPED
        if self._body is not None:
            parts = self._decoder.feed([b"".join(self._body)], cut_off)
            self._decoder.done = True
        else:
            parts = [] if self.done else self._events(self._splitter.flush(), cut_off)
        return parts if self.failure else parts + self._decoder.end()

    def _gather(self, data: bytes) -> list[Part]:
        assert self._body is not None
        self._body.append(data)
        self._body_bytes += len(data)
        if self._body_bytes > MAX_EVENT_BYTES:
            raise EventTooLarge
        return []

    def _events(
        self, events: list[bytes], if_not_json: ProviderErrorKind = ProviderErrorKind.MALFORMED
    ) -> list[Part]:
        return self._decoder.feed(events, if_not_json)
