"""Two descriptors as one trio stream, and the signals that end the server. Knows neither lines nor the peer.

Non-blocking mode is a property of the open file, not of the descriptor. Where others share that file
(a terminal, an output that is also stderr) it would break them, so these are served by threads.
"""

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Final

import trio

from acp_server.wire.stdio import WireFds

_STDERR: Final = 2
_READ_SIZE: Final = 65536


def open_stream(wire: WireFds) -> trio.abc.Stream:
    """A stream that owns the wire's descriptors. Run it in trio; close it when done."""
    return trio.StapledStream(_sender(wire.fd_out), _receiver(wire.fd_in))


def needs_thread(fd: int) -> bool:
    """Whether `fd` must stay in blocking mode."""
    if sys.platform == "win32":
        return True
    return os.isatty(fd) or os.path.sameopenfile(fd, _STDERR)


def _sender(fd: int) -> trio.abc.SendStream:
    return ThreadSendStream(fd) if needs_thread(fd) else trio.lowlevel.FdStream(fd)


def _receiver(fd: int) -> trio.abc.ReceiveStream:
    return ThreadReceiveStream(fd) if needs_thread(fd) else trio.lowlevel.FdStream(fd)


class _ThreadFd:
    """A blocking descriptor that is used by one thread at a time."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._limiter = trio.CapacityLimiter(1)

    async def aclose(self) -> None:
        """Close it, unless a thread that nobody waits for any more still blocks on it."""
        if self._limiter.borrowed_tokens == 0 and self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
        await trio.lowlevel.checkpoint()

    def _descriptor(self) -> int:
        if self._fd < 0:
            raise trio.ClosedResourceError("the descriptor was closed")
        return self._fd


class ThreadReceiveStream(_ThreadFd, trio.abc.ReceiveStream):
    """Reads in a thread. A cancelled read is abandoned, and what it still gets is lost."""

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Some bytes; b"" at the end. Raises BrokenResourceError when the descriptor fails."""
        fd, size = self._descriptor(), max_bytes or _READ_SIZE
        try:
            return await trio.to_thread.run_sync(
                os.read, fd, size, abandon_on_cancel=True, limiter=self._limiter
            )
        except OSError as error:
            raise trio.BrokenResourceError from error


class ThreadSendStream(_ThreadFd, trio.abc.SendStream):
    """Writes in a thread."""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Write all of it. Raises BrokenResourceError when the reader has gone."""
        fd = self._descriptor()
        try:
            await trio.to_thread.run_sync(_write_all, fd, data, abandon_on_cancel=True, limiter=self._limiter)
        except OSError as error:
            raise trio.BrokenResourceError from error

    async def wait_send_all_might_not_block(self) -> None:
        """Nothing is known about a blocking descriptor, so this does not wait."""
        self._descriptor()
        await trio.lowlevel.checkpoint()


def _write_all(fd: int, data: bytes | bytearray | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


logger = logging.getLogger("wholeturn.signals")


def ending_signals() -> tuple[signal.Signals, ...]:
    """What ends us in good order: SIGINT, SIGTERM, and SIGHUP, the terminal's or the connection's end.

    Who started us with SIGHUP ignored (`nohup`) wants us to live on without a terminal.
    """
    ends = signal.SIGINT, signal.SIGTERM
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return ends if ignored else (*ends, signal.SIGHUP)


async def watch_signals(
    stop: Callable[[], None], task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Call `stop` at each of them, until cancelled. Only the main thread gets signals."""
    if threading.current_thread() is not threading.main_thread():
        task_status.started()
        return
    with trio.open_signal_receiver(*ending_signals()) as signals:
        task_status.started()
        async for number in signals:
            logger.info("%s received, ending", signal.Signals(number).name)
            stop()
