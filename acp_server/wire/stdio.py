"""Takes the process's standard input and output for the wire. The only module that touches fds 0 and 1.

Needs no trio, so that the first line can be answered before trio is imported; `streams` makes trio
streams of what this gives. After it, a stray print, a C library or a child cannot reach the wire.
"""

import os
import sys
from collections.abc import Mapping

_STDIN = 0
_STDOUT = 1
_STDERR = 2


class WireFds:
    """The two private descriptors that carry the protocol. Children do not inherit them."""

    __slots__ = ("fd_in", "fd_out")

    def __init__(self, fd_in: int, fd_out: int) -> None:
        self.fd_in = fd_in
        self.fd_out = fd_out


def take_stdio() -> WireFds:
    """Move stdin and stdout to private descriptors; stdin is then empty and stdout goes to stderr.

    A standard descriptor that the parent closed counts as the null device: closed stdin is an
    input that has ended. Call it once, before anything is read or printed.
    """
    _open_closed_ones()
    wire = WireFds(os.dup(_STDIN), os.dup(_STDOUT))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, _STDIN)
    os.close(null)
    os.dup2(_STDERR, _STDOUT)
    # Only now: what was printed earlier and sits in the buffer goes to stderr, too.
    if sys.stdout is not None:
        sys.stdout.flush()
    sys.stdout = sys.stderr
    return wire


def _open_closed_ones() -> None:
    for fd in (_STDIN, _STDOUT, _STDERR):
        try:
            os.fstat(fd)
        except OSError:
            # The lowest free number is given, and all below are taken: it is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


class Hello:
    """What was read before the full server started.

    params: of the `initialize` that was answered already; None when none was.
    rest: bytes read and not yet handled. eof: the input has ended after them.
    """

    __slots__ = ("eof", "params", "rest")

    def __init__(
        self, params: Mapping[str, object] | None = None, rest: bytes = b"", *, eof: bool = False
    ) -> None:
        self.params = params
        self.rest = rest
        self.eof = eof
