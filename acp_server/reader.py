"""Reads messages off a stream and hands them on, in order. Knows not what they ask for.

Handling a message never waits, so nothing that the client does or leaves undone stops the reading.
"""

import logging
from collections.abc import Callable, Iterator
from typing import Final

import trio

from acp_server.errors import INVALID_REQUEST
from acp_server.framing import Line, LineSplitter, Oversized
from acp_server.hello import Hello
from acp_server.messages import Garbage, Message, parse

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
