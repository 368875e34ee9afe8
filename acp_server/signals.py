"""The signals that end the server. Knows not what ending means."""

import logging
import signal
import threading
from collections.abc import Callable

import trio

logger = logging.getLogger("wholeturn.signals")


async def watch_signals(
    stop: Callable[[], None], task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Call `stop` at each SIGINT and SIGTERM, until cancelled. Only the main thread gets signals."""
    if threading.current_thread() is not threading.main_thread():
        task_status.started()
        return
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for number in signals:
            logger.info("%s received, ending", signal.Signals(number).name)
            stop()
