"""Rewrites a chunked HTTP/1.1 response so that each network read holds one chunk: pure, bytes to bytes.

A streamed answer comes as thousands of chunks of some hundred bytes, and the HTTP parser spends 20
microseconds on each. Chunk borders mean nothing (RFC 9112, 7.1), so the complete chunks of a read
become one. Whatever is not plainly a run of small, complete chunks goes through as it came: the
HTTP parser behind this judges it.
"""

import re
from collections.abc import Callable

MAX_HEAD_BYTES = 128 * 1024
MAX_CHUNK_BYTES = 256 * 1024
"""A chunk that is larger, or a head, is not waited for: the rest of the response passes as it is."""
MAX_SIZE_LINE = 512


class ChunkJoiner:
    """One connection's incoming bytes. `expect_response` tells it that the next bytes start a response."""

    def __init__(self) -> None:
        self._rest = b""
        self._handle: Callable[[bytes], bytes] = _as_it_is

    def expect_response(self) -> None:
        """A request was sent."""
        self._rest = b""
        self._handle = self._head

    def feed(self, data: bytes) -> bytes:
        """What to hand on for these bytes; empty when more of them are needed."""
        return self._handle(data)

    def flush(self) -> bytes:
        """What was held back, at the end of the connection."""
        rest, self._rest = self._rest, b""
        return rest

    def _head(self, data: bytes) -> bytes:
        data = self._rest + data
        self._rest = b""
        start = 0
        while (end := _HEAD_END.search(data, start)) is not None:
            status = data[start + 9 : start + 12]
            # An interim response passes: the real one follows.
            if status[:1] != b"1" or status == b"101":
                return data[:start] + self._body(data[start : end.end()], data[end.end() :])
            start = end.end()
        if len(data) - start > MAX_HEAD_BYTES:
            return self._give_up(data)
        self._rest = data[start:]
        return data[:start]

    def _body(self, head: bytes, body: bytes) -> bytes:
        if not _is_chunked(head):
            return self._give_up(head + body)
        self._handle = self._chunks
        return head + (self._chunks(body) if body else b"")

    def _chunks(self, data: bytes) -> bytes:
        if self._rest:
            data = self._rest + data
        pieces: list[bytes] = []
        position, total = 0, len(data)
        passed = b""
        self._rest = b""
        while position < total:
            line_end = data.find(b"\r\n", position, position + MAX_SIZE_LINE)
            size = _size(data[position:line_end]) if line_end >= 0 else _NOT_YET
            start = line_end + 2
            end = start + size
            if size > 0 and data[end : end + 2] == b"\r\n":
                pieces.append(data[start:end])
                position = end + 2
            elif _incomplete(size, total - position, end + 2 - total):
                self._rest = data[position:]
                break
            else:  # the last chunk, one that is large, or none at all
                passed = self._give_up(data[position:])
                break
        if not pieces:
            return passed
        joined = b"".join(pieces)
        return b"%x\r\n%b\r\n%b" % (len(joined), joined, passed)

    def _give_up(self, data: bytes) -> bytes:
        self._handle = _as_it_is
        return data


_NOT_YET, _NO_SIZE = -1, -2
_HEAD_END = re.compile(rb"\n\r?\n")  # bare LF too: the parser behind this takes it


def _as_it_is(data: bytes) -> bytes:
    return data


def _size(line: bytes) -> int:
    """The chunk's size; chunk extensions are dropped with the chunk's own borders."""
    if b";" in line:
        line = line[: line.index(b";")]
    try:
        return int(line, 16) if line[:1].isalnum() and b"_" not in line else _NO_SIZE
    except ValueError:
        return _NO_SIZE


def _incomplete(size: int, have: int, missing: int) -> bool:
    """Whether more bytes can make a chunk of what there is. have: bytes so far, missing: until its end."""
    if size == _NOT_YET:
        return have < MAX_SIZE_LINE
    return 0 < size <= MAX_CHUNK_BYTES and missing > 0


def _is_chunked(head: bytes) -> bool:
    fields = [line.partition(b":") for line in head.lower().split(b"\n")[1:]]
    return any(name == b"transfer-encoding" and value.strip() == b"chunked" for name, _, value in fields)
