"""One piece of blocking work in a thread that hands out events as they come. Knows no model.

Whoever waits may leave at any time: the thread is told to stop, goes on to its next event by itself, and
its end is still noticed.
"""

import atexit
import math
import threading
from collections.abc import AsyncGenerator, Callable

import trio

EXIT_SECONDS = 10.0
_running: "set[Run]" = set()


class Run:
    """A thread at work. `take` is called in that thread, all else in trio.

    work: gets the run; what it raises comes out of `batches`. on_end: called in trio when the thread has
    ended, whether or not anyone still listens.
    """

    def __init__(self, work: "Callable[[Run], None]", on_end: Callable[[], None]) -> None:
        self.stopped = False
        self._work = work
        self._on_end = on_end
        self._token = trio.lowlevel.current_trio_token()
        self._send, self._receive = trio.open_memory_channel[bytes](math.inf)
        self._failure: BaseException | None = None
        self._over = threading.Event()

    def start(self) -> None:
        """Begin."""
        _running.add(self)
        trio.lowlevel.start_thread_soon(self._do, lambda _: self._in_trio(self._ended), name="local model")

    def stop(self) -> None:
        """Nobody listens any more: the work's next event ends it."""
        self.stopped = True
        self._receive.close()

    def take(self, event: bytes) -> bool:
        """Hand an event over. True: the work shall end."""
        if not self.stopped:
            self._in_trio(lambda: self._put(event))
        return self.stopped

    async def batches(self) -> AsyncGenerator[list[bytes], None]:
        """All events that are there, each time some are. Raises what the work raised, behind its events."""
        async for event in self._receive:
            batch = [event]
            while True:
                try:
                    batch.append(self._receive.receive_nowait())
                except (trio.WouldBlock, trio.EndOfChannel):
                    break
            yield batch
        if self._failure is not None:
            raise self._failure

    def _do(self) -> None:
        try:
            self._work(self)
        except BaseException as error:  # noqa: BLE001 - raised where the events are read
            self._failure = error
        finally:
            _running.discard(self)
            self._over.set()

    def wait(self, seconds: float) -> None:
        """Stop, and block until the thread's work is over."""
        self.stopped = True
        self._over.wait(seconds)

    def _put(self, event: bytes) -> None:
        if not self.stopped:
            self._send.send_nowait(event)

    def _ended(self) -> None:
        self._send.close()
        self._on_end()

    def _in_trio(self, call: Callable[[], None]) -> None:
        try:
            self._token.run_sync_soon(call)
        except trio.RunFinishedError:
            self.stopped = True


@atexit.register
def _end_all() -> None:
    """A thread that is inside of a library when the interpreter ends takes the process down, noisily."""
    for run in list(_running):
        run.wait(EXIT_SECONDS)
