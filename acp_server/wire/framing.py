"""Bytes to lines, bounded, and lines to messages handed on in order. Knows not what they ask for.

Lines end with LF; a CR before it and blank lines are dropped. The result does not depend on how the bytes
were cut into pieces. Handling a message never waits, so nothing that the client does or leaves undone stops
the reading.
"""

import logging
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import trio

from acp_server.wire.errors import INVALID_REQUEST
from acp_server.wire.messages import Garbage, Message, parse
from acp_server.wire.stdio import Hello

MAX_LINE: Final = 64 * 1024 * 1024
"""Bytes a line may have, its LF not counted. The longest that known clients send is below this."""


class Oversized(NamedTuple):
    """A line longer than `limit` bytes. All of it is thrown away, up to the next LF."""

    limit: int


Line = bytes | Oversized


class LineSplitter:
    """Feed it what was read; it gives the lines that are complete by then."""

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._limit = limit
        # Pieces are joined once, when the line ends: a long line costs one copy, not one a read.
        self._pieces: list[bytes] = []
        self._length = 0
        self._skipping = False

    def feed(self, data: bytes | bytearray) -> list[Line]:
        """The lines that `data` completes, in order. Only `data` itself is searched for an end."""
        *ends, rest = bytes(data).split(b"\n")
        lines = [line for end in ends for line in self._end(end)]
        return lines + list(self._keep(rest))

    def finish(self) -> bytes:
        """What came after the last LF (empty when nothing did): the end of input."""
        rest = b"".join(self._pieces)
        self._reset()
        return rest.rstrip(b"\r")

    def _keep(self, piece: bytes) -> Iterator[Oversized]:
        # Told as soon as it is certain: a line that never ends is reported as well.
        if self._skipping or not piece:
            return
        self._pieces.append(piece)
        self._length += len(piece)
        if self._length > self._limit:
            self._reset()
            self._skipping = True
            yield Oversized(self._limit)

    def _end(self, piece: bytes) -> Iterator[Line]:
        yield from self._keep(piece)
        line = b"".join(self._pieces) if len(self._pieces) != 1 else self._pieces[0]
        self._reset()
        if line.strip(b" \t\r"):
            yield line.removesuffix(b"\r")

    def _reset(self) -> None:
        self._pieces = []
        self._length = 0
        self._skipping = False


logger = logging.getLogger("wholeturn.reader")

_READ_SIZE: Final = 65536


async def read_messages(
    stream: trio.abc.ReceiveStream, hello: Hello, ended: trio.Event, handle: Callable[[Message], None]
) -> None:
    """Hand over every message until the input ends, breaks, or `ended` is set (seen at the next read).

    `hello.rest` comes first: what was read before.
    """
    splitter = LineSplitter()
    data: bytes | bytearray = hello.rest
    over = hello.eof
    try:
        while not ended.is_set():
            for message in _messages(splitter.feed(data)):
                handle(message)
            data = b"" if over else await stream.receive_some(_READ_SIZE)
            if not data:
                break
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        logger.info("the input broke off")
    if not ended.is_set():
        _unfinished(splitter.finish(), handle)


def _messages(lines: list[Line]) -> Iterator[Message]:
    for line in lines:
        if isinstance(line, Oversized):
            yield Garbage(INVALID_REQUEST, f"Invalid request: longer than {line.limit} bytes")
        else:
            yield parse(line)


def _unfinished(rest: bytes, handle: Callable[[Message], None]) -> None:
    """A last line without its LF counts when it is whole: no part of an object is an object."""
    if not rest.strip():
        return
    message = parse(rest)
    if isinstance(message, Garbage):
        logger.warning("dropped %d bytes of an unfinished line at the end of input", len(rest))
    else:
        handle(message)
