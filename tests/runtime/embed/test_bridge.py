"""trio under asyncio: what crosses over in both directions, and that nothing is left behind."""

import asyncio
import contextvars
import gc
import threading
import warnings
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
import trio

from runtime.embed.trio_thread import NotRunning, TrioThread, on_loop

BOUND = 20.0
WHO: contextvars.ContextVar[str] = contextvars.ContextVar("WHO", default="nobody")


def bounded(main: Callable[[], Coroutine[Any, Any, object]]) -> object:
    """Run it on a loop of its own, in which nothing may be left."""

    async def watched() -> object:
        async with asyncio.timeout(BOUND):
            result = await main()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return result

    return asyncio.run(watched())


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """No thread, no warning of a thing that was never closed or awaited."""
    before = set(threading.enumerate())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
        gc.collect()
    assert {thread for thread in set(threading.enumerate()) - before if "wholeturn" in thread.name} == set()


async def doubled(number: int) -> int:
    await trio.lowlevel.checkpoint()
    return number * 2


def test_a_result_comes_over():
    async def main() -> list[int]:
        async with TrioThread() as thread:
            return await asyncio.gather(*(thread.run(doubled, number) for number in range(50)))

    assert bounded(main) == [number * 2 for number in range(50)]


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), ExceptionGroup("g", [OSError()])])
def test_what_is_raised_comes_over_as_it_is(error: BaseException):
    async def fails() -> None:
        await trio.lowlevel.checkpoint()
        raise error

    async def main() -> None:
        async with TrioThread() as thread:
            with pytest.raises(type(error)) as caught:
                await thread.run(fails)
            assert caught.value is error
            assert await thread.run(doubled, 1) == 2

    bounded(main)


def test_context_variables_come_over_both_ways():
    async def ask() -> str:
        await asyncio.sleep(0)
        return WHO.get()

    async def main() -> None:
        async def look() -> tuple[str, str]:
            return WHO.get(), await asked()

        asked = on_loop(ask)
        async with TrioThread() as thread:
            for name in ("ada", "bob"):
                WHO.set(name)
                assert await thread.run(look) == (name, name)

    bounded(main)


def test_a_cancelled_task_waits_for_the_end_of_what_it_cancelled():
    async def main() -> None:
        begun, log = asyncio.Event(), []
        tell = on_loop(_setting(begun))

        async def works() -> None:
            try:
                await tell()
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(0.05)
                    log.append("recorded")

        async with TrioThread() as thread:
            task = asyncio.create_task(thread.run(works))
            await begun.wait()
            task.cancel()
            await asyncio.sleep(0)
            task.cancel()  # the second does not hurry it
            with pytest.raises(asyncio.CancelledError):
                await task
            assert log == ["recorded"]

    bounded(main)


def test_a_timeout_of_the_host_ends_a_call():
    async def main() -> None:
        async with TrioThread() as thread:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await thread.run(trio.sleep_forever)

    bounded(main)


def test_a_cancelled_call_cancels_what_runs_on_the_loop():
    async def main() -> None:
        log: list[str] = []

        async def waits() -> None:
            log.append("waits")
            try:
                await asyncio.sleep(BOUND)
            finally:
                log.append("stopped")

        async def calls() -> None:
            with trio.move_on_after(0.05):
                await waiting()
            log.append("on")

        waiting = on_loop(waits)
        async with TrioThread() as thread:
            await thread.run(calls)
        assert log == ["waits", "stopped", "on"]

    bounded(main)


def test_what_the_loop_raises_comes_over():
    async def main() -> None:
        async def fails() -> None:
            raise ValueError("of the host")

        async def gives_up() -> None:
            raise asyncio.CancelledError

        async with TrioThread() as thread:
            with pytest.raises(ValueError, match="of the host"):
                await thread.run(on_loop(fails))
            with pytest.raises(NotRunning, match="gave the call up"):
                await thread.run(on_loop(gives_up))

    bounded(main)


def test_closing_ends_all_calls_and_waits_for_them():
    async def main() -> None:
        thread = TrioThread()
        await thread.start()
        calls = [asyncio.create_task(thread.run(trio.sleep_forever)) for _ in range(5)]
        await thread.run(doubled, 1)
        await asyncio.gather(thread.aclose(), thread.aclose())
        for call in calls:
            with pytest.raises(NotRunning):
                await call
        with pytest.raises(NotRunning, match="closed"):
            await thread.run(doubled, 1)
        await thread.aclose()
        with pytest.raises(RuntimeError):
            await thread.start()

    bounded(main)


def test_a_thread_that_was_not_started_says_so():
    async def main() -> None:
        with pytest.raises(NotRunning, match="not started"):
            await TrioThread().run(doubled, 1)
        await TrioThread().aclose()

    bounded(main)


def test_a_thread_that_nobody_closes_ends_with_its_loop():
    async def main() -> TrioThread:
        thread = TrioThread()
        await thread.start()
        assert await thread.run(doubled, 1) == 2
        return thread

    thread = asyncio.run(main())

    async def later() -> None:
        with pytest.raises(NotRunning):
            await thread.run(doubled, 1)

    bounded(later)


def test_several_loops_share_a_thread():
    async def other(thread: TrioThread) -> int:
        return await thread.run(doubled, 21)

    async def main() -> list[int]:
        async with TrioThread() as thread:
            runs = (asyncio.to_thread(asyncio.run, other(thread)) for _ in range(4))
            return await asyncio.gather(*runs)

    assert bounded(main) == [42] * 4


def test_a_function_of_a_loop_that_has_gone_says_so():
    async def make() -> Callable[[], Coroutine[Any, Any, None]]:
        return on_loop(_nothing)

    gone = asyncio.run(make())

    async def main() -> None:
        async with TrioThread() as thread:
            with pytest.raises(NotRunning, match="closed"):
                await thread.run(gone)

    bounded(main)


def test_on_loop_needs_a_loop():
    with pytest.raises(RuntimeError, match="no running event loop"):
        on_loop(_nothing)


async def _nothing() -> None:
    await asyncio.sleep(0)


def _setting(event: asyncio.Event) -> Callable[[], Coroutine[Any, Any, None]]:
    async def set_it() -> None:
        event.set()

    return set_it
