"""`Agent` for programs that run asyncio: prompts awaited there, events heard there, with back pressure.

The agent itself lives in a trio thread (`runtime.embed.trio_thread`), its own or one that many share.
"""

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from types import TracebackType

import trio

from runtime.embed.agent import Agent, Answer
from runtime.embed.trio_thread import TrioThread, on_loop
from runtime.values.events import Event

EVENTS_AHEAD = 64
"""Events that may wait for their reader before the turn waits too."""


class AsyncioTurn:
    """A running prompt: iterate over its events, then read its `answer`.

    Ends the iteration by raising what ended the turn, if that was an error.
    """

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._ended = False
        self._answer: Answer | None = None
        self._error: BaseException | None = None

    def __aiter__(self) -> "AsyncioTurn":
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            if self._ended:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        event = self._events.popleft()
        if len(self._events) < EVENTS_AHEAD:
            self._room.set()
        return event

    @property
    def answer(self) -> Answer:
        """What came of the prompt. Raises what ended the turn, and RuntimeError while it runs."""
        if self._error is not None:
            raise self._error
        if self._answer is None:
            raise RuntimeError("the turn is still running: read its events to the end first")
        return self._answer

    def take(self, event: Event) -> None:
        """Keep an event for the reader; nothing once nobody reads."""
        if self._ended:
            return
        self._events.append(event)
        self._news.set()
        if len(self._events) >= EVENTS_AHEAD:
            self._room.clear()

    async def put(self, event: Event) -> None:
        """The same; returns when there is room for the next one."""
        self.take(event)
        await self._room.wait()

    def end(self, answer: Answer | None = None, error: BaseException | None = None) -> bool:
        """No more events come. False: that was known already, and with what."""
        if self._ended:
            return False
        self._ended, self._answer, self._error = True, answer, error
        self._news.set()
        self._room.set()
        return True


class AsyncioAgent:
    """An agent on an event loop. Use it as `async with`; a prompt that comes while one runs waits for it.

    agent: not opened yet; what it calls (tools, approve, on_event) are trio functions, which `on_loop` makes
    of asyncio's. thread: a running one that is shared, None for one of its own. Belongs to the loop that
    opened it.
    """

    def __init__(self, agent: Agent, thread: TrioThread | None = None) -> None:
        self.agent = agent
        self._thread = thread
        self._stack = AsyncExitStack()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turnstile = asyncio.Lock()
        self._turn: AsyncioTurn | None = None
        self._put: Callable[[Event], Awaitable[None]] | None = None

    async def __aenter__(self) -> "AsyncioAgent":
        """Open the session. Raises StoreError, and NotRunning for a shared thread that does not run."""
        async with AsyncExitStack() as stack:
            if self._thread is None:
                self._thread = await stack.enter_async_context(TrioThread())
            self._loop = asyncio.get_running_loop()
            thread, otherwise = self._thread, self.agent.on_event
            self.agent.on_event = self._hear_and(otherwise)
            stack.callback(setattr, self.agent, "on_event", otherwise)
            await thread.run(self.agent.__aenter__)
            stack.push_async_callback(thread.run, self.agent.__aexit__, None, None, None)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop what runs, wait until it is recorded, end the thread if it is the agent's own."""
        await self._stack.aclose()

    async def ask(self, text: str) -> Answer:
        """Cancelled, it returns when the turn is recorded as cancelled."""
        self._check()
        async with self._turnstile:
            return await self._running.run(self.agent.ask, text)

    @asynccontextmanager
    async def turn(self, text: str) -> AsyncIterator[AsyncioTurn]:
        """A prompt whose events are read one by one; the turn waits for a reader that is far behind.

        Left early, the turn is cancelled, and recorded so before this returns.
        """
        self._check()
        async with self._turnstile:
            turn = self._turn = AsyncioTurn()
            self._put = on_loop(turn.put)
            task = asyncio.create_task(self._play(turn, text))
            try:
                yield turn
            finally:
                if turn.end(error=RuntimeError("the turn was left before its end")):
                    task.cancel()
                await _over(task)
                self._turn = self._put = None

    async def cancel(self) -> None:
        """Stop the turn that runs, as the person would: its answer has the stop reason `cancelled`."""

        async def cancel() -> None:
            await trio.lowlevel.checkpoint()
            self.agent.session.cancel()

        self._check()
        await self._running.run(cancel)

    @property
    def _running(self) -> TrioThread:
        assert self._thread is not None  # `_check` comes first
        return self._thread

    def _check(self) -> None:
        if self._loop is None:
            raise RuntimeError("use the agent as `async with AsyncioAgent(...) as agent`")
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError(
                "this agent was opened on another event loop; open one here, it may share the TrioThread"
            )

    async def _play(self, turn: AsyncioTurn, text: str) -> None:
        try:
            turn.end(await self._running.run(self.agent.ask, text))
        except BaseException as error:
            turn.end(error=error)
            raise

    def _hear_and(
        self, otherwise: Callable[[Event], Awaitable[None]] | None
    ) -> Callable[[Event], Awaitable[None]]:
        in_order = trio.Lock()

        async def hear(event: Event) -> None:
            """In trio. One event at a time: a turn's tasks tell side by side."""
            async with in_order:
                await self._hand_over(event)
                if otherwise is not None:
                    await otherwise(event)

        return hear

    async def _hand_over(self, event: Event) -> None:
        turn, put, loop = self._turn, self._put, self._loop
        if turn is None or put is None or loop is None:
            return
        if trio.current_effective_deadline() == math.inf:
            await put(event)
            return
        # The end of a turn has a time limit, within which it must be recorded whoever reads.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(turn.take, event)


async def _over(task: "asyncio.Task[None]") -> None:
    """Wait for the task's end; how it ended is told elsewhere. A cancellation goes on after it."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
            task.cancel()
    if not task.cancelled():
        task.exception()
    if cancelled is not None:
        raise cancelled
