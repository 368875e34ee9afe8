"""The end of what a process wrote: bytes that lie in a pipe when there is no more time to wait for them."""

import os

from trio.abc import ReceiveStream
from trio.lowlevel import FdStream

_PIECE = 65536


def rest_of(stream: ReceiveStream | None, most: int) -> bytes:
    """What was written and not read yet, about `most` bytes of it. Never waits. Nobody else may read."""
    if not isinstance(stream, FdStream):
        return b""
    kept = bytearray()
    while len(kept) < most:
        try:
            piece = os.read(stream.fileno(), _PIECE)
        except OSError:
            # Nothing there at the moment, and whoever could write more is not waited for.
            break
        if not piece:
            break
        kept += piece
    return bytes(kept)
