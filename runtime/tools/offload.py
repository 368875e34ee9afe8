"""Blocking work in a worker thread that a cancelled caller leaves behind. Knows no tool."""

import threading
from collections.abc import Callable
from typing import TypeVar

import trio

T = TypeVar("T")


async def in_thread(work: Callable[[Callable[[], bool]], T]) -> T:
    """Run `work(stopped)` in a thread. A cancel returns at once, and `stopped()` becomes true.

    Only for work that changes nothing: it may go on for a moment after its caller is gone.
    """
    gone = threading.Event()
    try:
        return await trio.to_thread.run_sync(work, gone.is_set, abandon_on_cancel=True)
    finally:
        gone.set()
