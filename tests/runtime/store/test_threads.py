"""Work in threads whose caller may leave: it goes on, and the session's next one waits for it."""

import threading
from functools import partial

import pytest
import trio
import trio.testing

from runtime.store.common.threads import Threads
from runtime.values.grace import withstanding


class Gate:
    """Work that waits for a sign, and says what it did."""

    def __init__(self) -> None:
        self.begun, self.sign = threading.Event(), threading.Event()
        self.done: list[str] = []

    def wait(self) -> None:
        self.begun.set()
        assert self.sign.wait(20)
        self.done.append("late")

    def go_on(self) -> None:
        self.done.append("next")


async def left(threads: Threads, gate: Gate, session_id: str) -> None:
    """Begin the gate's work and go."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(threads.run, gate.wait, session_id)
        await trio.to_thread.run_sync(gate.begun.wait, 20)
        nursery.cancel_scope.cancel()


@pytest.fixture
def gate():
    """What stands still until the test is over at the latest."""
    made = Gate()
    yield made
    made.sign.set()


@pytest.mark.parametrize("session_id", ["s1", "s2", ""])
async def test_the_sessions_next_one_waits_for_what_was_left(gate, session_id):
    threads = Threads(trio.CapacityLimiter(4))
    with trio.fail_after(20):
        await left(threads, gate, "s1")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(threads.run, gate.go_on, session_id)
            if session_id == "s1":
                await trio.testing.wait_all_tasks_blocked()
                assert gate.done == []
                gate.sign.set()
        assert threads.stands_still or session_id == "s1"
        gate.sign.set()
        await threads.run(threading.Event, "s1")
        assert not threads.stands_still
    assert gate.done == (["late", "next"] if session_id == "s1" else ["next", "late"])


async def test_what_is_quick_is_done_although_its_caller_was_cancelled(gate, monkeypatch):
    monkeypatch.setattr("runtime.store.common.threads.withstanding", partial(withstanding, 20))
    threads = Threads(trio.CapacityLimiter(4))
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(threads.run, gate.wait, "s1")
            await trio.to_thread.run_sync(gate.begun.wait, 20)
            scope.cancel()
            gate.sign.set()
    assert [gate.done, scope.cancelled_caught] == [["late"], True]


async def test_what_never_began_holds_nobody_up(gate):
    limiter = trio.CapacityLimiter(1)
    threads, never = Threads(limiter), Gate()
    with trio.fail_after(20):
        await left(threads, gate, "s1")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(threads.run, never.wait, "s2")
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        gate.sign.set()
        await threads.run(never.go_on, "s2")
    assert [never.begun.is_set(), never.done] == [False, ["next"]]


async def test_an_error_and_an_answer_come_back():
    threads = Threads(trio.CapacityLimiter(1))
    assert await threads.run(lambda: 3, "s1") == 3
    with pytest.raises(ZeroDivisionError):
        await threads.run(lambda: 1 // 0, "s1")
    assert await threads.run(lambda: 4, "s1") == 4
