"""An agent on an event loop: answers, events with back pressure, recorded cancels, and no remains."""

import asyncio
import gc
import random
import threading
import warnings
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from trio.testing import wait_all_tasks_blocked

from runtime import Agent, AsyncioAgent, FunctionTool, TrioThread, on_loop
from runtime.embed.asyncio_agent import EVENTS_AHEAD
from runtime.store.memory import MemoryStore
from runtime.store.sqlite.store import SqliteStore
from runtime.transcript.turn_record import read_turns
from runtime.values.errors import ProviderError
from runtime.values.events import AgentText, ToolCallChanged, ToolCallStarted
from tests.support.fakes import script

BOUND = 60.0
LOOK = {"calls": [{"name": "look", "arguments": {"at": "x"}}]}


def bounded(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run it on a loop of its own; then no task, no thread and no warning may be left."""

    async def watched() -> None:
        async with asyncio.timeout(BOUND):
            await main()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(watched())
        gc.collect()
    assert [thread.name for thread in threading.enumerate() if "wholeturn" in thread.name] == []


def looking(run_it: Callable[[Any], Coroutine[Any, Any, str]]) -> FunctionTool:
    return FunctionTool("look", "Look.", on_loop(run_it))


async def outcomes(thread: TrioThread, store: MemoryStore | SqliteStore, session_id: str) -> list[str]:
    """How each recorded turn ended."""

    async def read() -> list[str]:
        return [turn.end.outcome if turn.end else "crash" async for turn in read_turns(store, session_id)]

    return await thread.run(read)


def test_tools_and_permission_are_asyncios_own():
    async def main() -> None:
        seen: list[object] = []

        async def look(arguments: Any) -> str:
            await asyncio.sleep(0)
            seen.append(arguments)
            return "nothing"

        async def approve(call: ToolCallStarted) -> bool:
            await asyncio.sleep(0)
            seen.append(call.name)
            return True

        model = script(LOOK, {"text": "done"})
        agent = Agent(model, tools=[looking(look)], approve=on_loop(approve))
        async with AsyncioAgent(agent) as host:
            answer = await host.ask("go")
            assert (answer.text, answer.stop_reason) == ("done", "end_turn")
        assert seen == ["look", {"at": "x"}]

    bounded(main)


def test_events_are_read_one_by_one_and_also_heard():
    async def main() -> None:
        heard: list[object] = []

        async def hear(event: object) -> None:
            heard.append(event)

        async def look(arguments: Any) -> str:
            return "nothing"

        agent = Agent(script(LOOK, {"text": ["do", "ne"]}), tools=[looking(look)], on_event=on_loop(hear))
        async with AsyncioAgent(agent) as host, host.turn("go") as turn:
            with pytest.raises(RuntimeError, match="still running"):
                assert turn.answer
            events = [event async for event in turn]
            assert turn.answer.text == "done"
        assert events == heard
        assert [event.text for event in events if isinstance(event, AgentText)] == ["do", "ne"]
        assert [event.status for event in events if isinstance(event, ToolCallChanged)][-1] == "completed"

    bounded(main)


def test_a_turn_waits_for_a_reader_that_is_far_behind():
    pieces = [f"{number} " for number in range(5 * EVENTS_AHEAD)]

    async def main() -> None:
        heard: list[object] = []

        async def hear(event: object) -> None:
            heard.append(event)

        agent = Agent(script({"text": pieces, "chunk_delay": 0.0001}), on_event=on_loop(hear))
        async with TrioThread() as thread, AsyncioAgent(agent, thread) as host, host.turn("go") as turn:
            first = await anext(turn)
            await thread.run(wait_all_tasks_blocked, 0.2)
            assert EVENTS_AHEAD - 1 <= len(heard) <= EVENTS_AHEAD + 1
            events = [first, *[event async for event in turn]]
            assert "".join(event.text for event in events if isinstance(event, AgentText)) == "".join(pieces)

    bounded(main)


@pytest.mark.parametrize("how", ["task", "timeout", "left", "cancel"])
def test_a_turn_that_is_stopped_is_recorded_before_anyone_goes_on(how: str):
    async def main() -> None:
        store = MemoryStore()
        model = script({"text": ["half"], "hang": True}, {"text": "next"})
        agent = Agent(model, store=store, session_id="s")
        async with TrioThread() as thread, AsyncioAgent(agent, thread) as host:
            await _stop(host, how)
            assert await outcomes(thread, store, "s") == ["cancelled"]
            assert (await host.ask("and now?")).text == "next"

    bounded(main)


async def _stop(host: AsyncioAgent, how: str) -> None:
    if how == "timeout":
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(host.ask("go"), 0.3)
        return
    async with host.turn("go") as turn:
        async for event in turn:
            if not isinstance(event, AgentText):
                continue
            if how == "left":
                return
            if how == "cancel":
                await host.cancel()
            else:
                break
        if how == "cancel":
            assert (turn.answer.text, turn.answer.stop_reason) == ("half", "cancelled")


def test_a_reader_that_sleeps_does_not_keep_the_end_from_being_recorded():
    async def main() -> None:
        store = MemoryStore()
        pieces = ["x"] * (3 * EVENTS_AHEAD)
        async with TrioThread() as thread:
            agent = Agent(script({"text": pieces}), store=store, session_id="s")
            async with AsyncioAgent(agent, thread) as host, host.turn("go") as turn:
                await anext(turn)
                await host.cancel()
                async for _ in turn:
                    pass
                assert turn.answer.stop_reason in ("cancelled", "end_turn")
            assert await outcomes(thread, store, "s") == [
                "cancelled" if turn.answer.stop_reason == "cancelled" else "done"
            ]

    bounded(main)


async def read_to_the_end(host: AsyncioAgent) -> None:
    async with host.turn("b") as turn:
        async for _ in turn:
            pass


def test_what_ended_a_turn_is_raised_and_the_next_one_works():
    async def main() -> None:
        broken = {"error": {"status": 401, "message": "no"}}
        async with AsyncioAgent(Agent(script(broken, broken, {"text": "ok"}))) as host:
            with pytest.raises(ProviderError):
                await host.ask("a")
            with pytest.raises(ProviderError):
                await read_to_the_end(host)
            assert (await host.ask("c")).text == "ok"

    bounded(main)


def test_prompts_of_one_agent_wait_for_each_other():
    async def main() -> None:
        model = script(*({"text": str(number), "delay": 0.01} for number in range(5)))
        async with AsyncioAgent(Agent(model)) as host:
            answers = await asyncio.gather(*(host.ask("go") for _ in range(5)))
            assert [answer.text for answer in answers] == list("01234")

    bounded(main)


def test_misuse_is_told():
    async def main() -> None:
        host = AsyncioAgent(Agent(script({"text": "x"})))
        with pytest.raises(RuntimeError, match="async with"):
            await host.ask("go")
        async with host:
            with pytest.raises(RuntimeError, match="another event loop"):
                await asyncio.to_thread(asyncio.run, host.ask("go"))
            assert (await host.ask("go")).text == "x"

    bounded(main)


CHANCE = random.Random(8)


async def seen(arguments: Any) -> str:
    await asyncio.sleep(CHANCE.random() / 50)
    return "seen"


async def stopped_by_a_timeout(host: AsyncioAgent) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(host.ask("go"), CHANCE.random() / 10)


async def left_early(host: AsyncioAgent) -> None:
    async with host.turn("go") as turn:
        async for _ in turn:
            if CHANCE.random() < 0.1:
                break


async def stopped_by_another(host: AsyncioAgent) -> None:
    task = asyncio.create_task(host.ask("go"))
    await asyncio.sleep(CHANCE.random() / 10)
    await host.cancel()
    assert (await task).stop_reason in ("cancelled", "end_turn")


async def lived(thread: TrioThread, store: SqliteStore, name: str) -> None:
    """One session: six turns, most of them stopped, and one that is let be."""
    replies = [LOOK, {"text": ["a", "b", "c"], "chunk_delay": 0.002}] * 12
    agent = Agent(script(*replies, loop=True), tools=[looking(seen)], store=store, session_id=name)
    async with AsyncioAgent(agent, thread) as host:
        for _ in range(6):
            await CHANCE.choice([stopped_by_a_timeout, left_early, stopped_by_another])(host)
        assert (await host.ask("last")).stop_reason == "end_turn"
    ended = await outcomes(thread, store, name)
    assert set(ended) <= {"done", "cancelled"}
    assert ended[-1] == "done"


def test_twenty_sessions_at_once_with_cancels_at_any_moment(tmp_path: Path):
    async def main() -> None:
        store = SqliteStore(tmp_path / "sessions.db")
        async with TrioThread() as thread:
            async with asyncio.TaskGroup() as group:
                for number in range(20):
                    group.create_task(lived(thread, store, f"s{number}"))
            await thread.run(store.aclose)

    bounded(main)
