"""Ways in which the mock model fails, by name: what it sends in place of an answer, or of its rest. No I/O.

A status (`429`, `529`, …) refuses; the others are of an answer that has begun or that is no answer.
"""

import zlib
from collections.abc import Iterator

from mock_reply import Json, Reply

SECONDS_STATED = "0.05"
"""What a refusal with 429 asks to wait."""
HALF_ARGUMENTS = '{"path": "no'
PAGE = b"<!DOCTYPE html><html><title>Log in</title></html>"
FAULTS = ("drop", "silence", "nonsense", "arguments", "page", "gzip", "slow")


class Cut(Exception):
    """The connection is to be closed here."""


def names(config: Json) -> list[str]:
    """The faults that a config asks for, one a request; raises ValueError for one that there is not."""
    wanted = [str(name) for name in config.get("faults") or []]
    for name in wanted:
        if name and not name.isdecimal() and name not in FAULTS:
            raise ValueError(f"no such fault: {name}; there are a status and {', '.join(FAULTS)}")
    return wanted


def spoilt(fault: str, reply: Reply) -> Reply:
    """The answer that a fault makes of it before it is sent."""
    if fault == "arguments" and reply.call:
        reply.call = {**reply.call, "function": {**reply.call["function"], "arguments": HALF_ARGUMENTS}}
    return reply


def frames(fault: str, reply: Reply) -> Iterator[tuple[str, bytes]]:
    """The answer's frames as far as a fault lets them. Raises Cut."""
    if not fault:
        yield from reply.frames()
        return
    whole = list(reply.frames())
    half = max(1, len(whole) // 2)
    if fault == "page":
        yield "", PAGE
    elif fault == "gzip":
        packer = zlib.compressobj(wbits=31)
        for piece, data in whole:
            yield piece, packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)
        yield "", packer.flush()
    elif fault in ("drop", "silence", "nonsense"):
        yield from whole[:half]
        if fault == "drop":
            raise Cut
        if fault == "nonsense":
            yield "", reply.nonsense
            yield from whole[half:]
    else:
        yield from whole
