"""trio for programs that run asyncio: a thread with a trio run of its own, and calls in both directions.

`TrioThread.run` is awaited under asyncio and runs a trio function; `on_loop` makes an asyncio function one
that trio can await. Results, exceptions and context variables cross over, and so does a cancellation: whoever
cancels waits until the other side has come to its end. Knows nothing of agents, and no event loop by name.
"""

import asyncio
import contextvars
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, ParamSpec, TypeVar

import trio

P = ParamSpec("P")
T = TypeVar("T")

LOOP_CHECK = 1.0
"""Seconds between two looks whether the loop that something waits for is still there."""


class NotRunning(RuntimeError):
    """The thread, or the event loop on the other side, is not there (any more)."""


@dataclass(slots=True, eq=False)
class _Call(Generic[T]):
    """A trio function on its way. scope: cancels it."""

    run: Callable[[], Awaitable[T]]
    done: "Future[T]" = field(default_factory=Future)
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    context: contextvars.Context = field(default_factory=contextvars.copy_context)


class TrioThread:
    """A thread that runs trio. Use it as `async with`, or `start` and `aclose` it; either way only once.

    `run` may be called from any event loop of any thread at the same time. The end of the loop that started
    it closes it, if nobody did before.
    """

    def __init__(self) -> None:
        self._thread = threading.Thread(target=self._serve, name="wholeturn-trio", daemon=True)
        self._started: Future[None] = Future()
        self._ended: Future[None] = Future()
        self._calls: set[_Call[Any]] = set()
        self._closing = False
        self._token: trio.lowlevel.TrioToken | None = None
        self._nursery: trio.Nursery | None = None
        self._stop: trio.Event | None = None
        self._keeper: AsyncGenerator[None, None] | None = None

    async def __aenter__(self) -> "TrioThread":
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def start(self) -> None:
        """Start the thread; returns when it takes calls. Raises RuntimeError the second time."""
        self._thread.start()
        try:
            await _arrived(self._started, _nothing)
        except asyncio.CancelledError:
            await self._end()
            raise
        self._keeper = self._until_the_loop_ends()
        await anext(self._keeper)

    async def run(self, function: Callable[..., Awaitable[T]], *args: object) -> T:
        """What the trio function gives or raises. Raises NotRunning without a thread that takes calls.

        Cancelled, it cancels the function, waits for its end, and then lets the cancellation go on.
        """
        call = _Call(lambda: function(*args))
        self._soon(lambda: self._begin(call))
        return await _arrived(call.done, lambda: self._soon(call.scope.cancel))

    async def aclose(self) -> None:
        """Cancel all calls, wait for their ends and for that of the thread. May be called again."""
        await self._end()
        if self._keeper is not None:
            await self._keeper.aclose()

    # ------------------------------------------------------------ on the loop's side

    def _soon(self, call: Callable[[], object]) -> None:
        if self._token is None:
            raise NotRunning("the trio thread was not started")
        try:
            self._token.run_sync_soon(call)
        except trio.RunFinishedError:
            raise NotRunning("the trio thread is closed") from None

    async def _end(self) -> None:
        if self._token is None:
            return
        with suppress(NotRunning):
            self._soon(self._shut)
        if not self._ended.done():
            await _arrived(self._ended, _nothing)
        self._thread.join()

    async def _until_the_loop_ends(self) -> AsyncGenerator[None, None]:
        """A loop that ends closes the generators that were begun on it."""
        try:
            yield
        finally:
            await self._end()

    # ------------------------------------------------------------ in the thread

    def _serve(self) -> None:
        try:
            trio.run(self._main)
        finally:
            for call in self._calls:
                call.done.set_exception(NotRunning("the trio thread broke down"))
            self._ended.set_result(None)

    async def _main(self) -> None:
        async with trio.open_nursery() as nursery:
            self._nursery, self._stop = nursery, trio.Event()
            self._token = trio.lowlevel.current_trio_token()
            self._started.set_result(None)
            await self._stop.wait()

    def _begin(self, call: _Call[T]) -> None:
        assert self._nursery is not None  # made before the first call is taken
        if self._closing:
            call.done.set_exception(NotRunning("the trio thread is closed"))
            return
        self._calls.add(call)
        # A task begins with a copy of the context in which it is started: here the caller's.
        call.context.run(self._nursery.start_soon, self._do, call)

    async def _do(self, call: _Call[T]) -> None:
        try:
            with call.scope:
                result = await call.run()
                call.done.set_result(result)
            if not call.done.done():
                call.done.set_exception(NotRunning("the call was cancelled"))
        except BaseException as error:  # noqa: BLE001 - it is raised where the call was made
            call.done.set_exception(error)
        finally:
            self._calls.discard(call)

    def _shut(self) -> None:
        assert self._stop is not None  # made before the first call is taken
        self._closing = True
        for call in self._calls:
            call.scope.cancel()
        self._stop.set()


async def _arrived(future: "Future[T]", on_cancel: Callable[[], None]) -> T:
    """The result of another thread's future. A cancellation goes on when that future is done, not before."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Future[None] = loop.create_future()

    def tell(_: "Future[T]") -> None:
        with suppress(RuntimeError):  # nobody waits on a loop that is closed
            loop.call_soon_threadsafe(arrived.set_result, None)

    future.add_done_callback(tell)
    cancelled: asyncio.CancelledError | None = None
    while not arrived.done():
        try:
            await asyncio.wait([arrived])
        except asyncio.CancelledError as error:
            cancelled = error
            with suppress(NotRunning):
                on_cancel()
    if cancelled is not None:
        raise cancelled
    return future.result()


def _nothing() -> None:
    """There is nothing to cancel."""


# ---------------------------------------------------------------- the other direction


def on_loop(
    function: Callable[P, Coroutine[Any, Any, T]], loop: asyncio.AbstractEventLoop | None = None
) -> Callable[P, Coroutine[Any, Any, T]]:
    """The asyncio function as one that trio can await: it runs on the loop, None for the one that runs now.

    Called when that loop is closed, or gave the function up, it raises NotRunning.
    """
    home = loop or asyncio.get_running_loop()

    async def called(*args: P.args, **kwargs: P.kwargs) -> T:
        visit = _Visit(home, lambda: function(*args, **kwargs))
        return await visit.made()

    return called


class _Visit(Generic[T]):
    """One call of trio's on a loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, make: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._loop = loop
        self._make = make
        self._context = contextvars.copy_context()
        self._token = trio.lowlevel.current_trio_token()
        self._over = trio.Event()
        self._task: asyncio.Task[T] | None = None
        self._unwanted = False

    async def made(self) -> T:
        """In trio: what the function gives or raises. Cancelled, it cancels the function and waits for it."""
        await trio.lowlevel.checkpoint_if_cancelled()
        self._ask(self._begin)
        try:
            await self._done()
        except trio.Cancelled:
            with suppress(NotRunning), trio.CancelScope(shield=True):
                self._ask(self._give_up)
                await self._done()
            raise
        assert self._task is not None  # it is over
        if self._task.cancelled():
            raise NotRunning("the event loop gave the call up")
        return self._task.result()

    async def _done(self) -> None:
        while not self._over.is_set():
            with trio.move_on_after(LOOP_CHECK):
                await self._over.wait()
            if self._loop.is_closed() and not self._over.is_set():
                raise NotRunning("the event loop is closed")

    def _ask(self, call: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            raise NotRunning("the event loop is closed") from None

    # On the loop's side.

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._make(), context=self._context)
        self._task.add_done_callback(self._end)
        if self._unwanted:
            self._task.cancel()

    def _give_up(self) -> None:
        self._unwanted = True
        if self._task is not None:
            self._task.cancel()

    def _end(self, task: asyncio.Task[T]) -> None:
        if not task.cancelled():
            task.exception()  # it is raised on the other side, or nobody wants it any more
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._over.set)
