"""Server-sent events: from bytes to the data of each event, any chunking, bounded. Knows no JSON.

Lines end in LF or CRLF. Comments and fields other than `data` are passed over. A lone CR as a line
end, which the standard also permits, is not taken for one: no API sends it.
"""

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
