"""From the bytes of an answer to parts: server-sent events, or one JSON body. Pure; knows no socket, no API.

Any chunking, bounded. Lines end in LF or CRLF. Comments and fields other than `data` are passed over. A lone
CR as a line end, which the standard also permits, is not taken for one: no API sends it.
"""

from runtime.providers.errors.failures import Peer, failure
from runtime.providers.http.decoding import Decoder
from runtime.values.errors import ProviderError, ProviderErrorKind
from runtime.values.model import Part, TextPart, ThoughtPart

MAX_EVENT_BYTES = 32 * 1024 * 1024


class EventTooLarge(ValueError):
    """An event without an end in MAX_EVENT_BYTES."""


class SseSplitter:
    """Feed it what was read; it gives back the data of the events that are complete."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._open: list[bytes] = []
        self._open_bytes = 0
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._max = max_event_bytes

    def feed(self, chunk: bytes) -> list[bytes]:
        """Data of each event that ended in this chunk, in order. Raises EventTooLarge."""
        if b"\n" not in chunk:
            self._keep(chunk)
            return []
        if self._open:
            chunk = b"".join((*self._open, chunk))
        lines = chunk.split(b"\n")
        self._open, self._open_bytes = [], 0
        rest = lines.pop()
        if rest:
            self._keep(rest)
        return self._events(lines)

    def flush(self) -> list[bytes]:
        """What is left at the end of the stream: an event whose empty line never came."""
        lines = [b"".join(self._open), b""]
        self._open, self._open_bytes = [], 0
        return self._events(lines)

    def _keep(self, piece: bytes) -> None:
        self._open.append(piece)
        self._open_bytes += len(piece)
        self._check()

    def _check(self) -> None:
        if self._open_bytes + self._data_bytes > self._max:
            raise EventTooLarge(f"an event of more than {self._max} bytes")

    def _events(self, lines: list[bytes]) -> list[bytes]:
        events: list[bytes] = []
        data = self._data
        for line in lines:
            if line[:5] == b"data:":
                value = line[6:] if line[5:6] == b" " else line[5:]
                data.append(value[:-1] if value[-1:] == b"\r" else value)
            elif data and line in (b"", b"\r"):
                events.append(data[0] if len(data) == 1 else b"\n".join(data))
                data.clear()
        self._data_bytes = sum(map(len, data)) if data else 0
        self._check()
        return events


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
