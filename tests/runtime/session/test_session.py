"""A session: prompts in order, one turn at a time, cancel anywhere, close."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from runtime.session.session import State
from runtime.values.errors import InvalidRequest
from runtime.values.events import ToolCallStarted
from runtime.values.texts import CANCELLED_RESULT, NOT_RUN_RESULT, NOTES
from tests.support.fakes import EchoTool, ask, call, make_session, prompt, script


async def test_a_second_prompt_waits_for_the_first_and_both_are_kept_in_order(autojump_clock):
    provider = script({"text": "1", "delay": 1}, {"text": "2"})
    session, client, _ = await make_session(provider)
    async with trio.open_nursery() as nursery:
        first, second = session.submit(prompt("a")), session.submit(prompt("b"))
        nursery.start_soon(session.run, second)
        nursery.start_soon(session.run, first)
    assert client.text() == "12"
    assert [row.content for row in provider.requests[1].rows()[1:]] == ["a", "1", "b"]
    assert session.state is State.IDLE


async def test_cancel_stops_the_running_turn_and_clears_the_queue(autojump_clock):
    provider = script({"text": "par", "hang": True}, {"text": "next"})
    session, client, _ = await make_session(provider)
    results: list[str] = []

    async def run(text: str) -> None:
        results.append(await ask(session, text))

    async with trio.open_nursery() as nursery:
        for text in ("a", "b", "c"):
            nursery.start_soon(run, text)
            await wait_all_tasks_blocked()
        session.cancel()
    assert results == ["cancelled"] * 3
    assert await ask(session, "d") == "end_turn"
    contents = [row.content for row in provider.requests[-1].rows()[1:]]
    assert contents == ["a", f"par\n\n{NOTES['cancelled']}", "d"]
    assert client.text() == "parnext"


@pytest.mark.parametrize("times", [1, 2])
async def test_cancel_in_a_tool_completes_the_pairs(autojump_clock, times):
    provider = script({"calls": [call("wait", id="w"), call("a", id="a")]}, {"text": "on"})
    session, client, _ = await make_session(provider, tools=[EchoTool()])
    async with trio.open_nursery() as nursery:
        ticket = session.submit(prompt("go"))
        nursery.start_soon(session.run, ticket)
        await wait_all_tasks_blocked()
        for _ in range(times):
            session.cancel()
    assert await ask(session, "next") == "end_turn"
    results = {row.tool_call_id: row.content for row in provider.requests[1].rows() if row.role == "tool"}
    assert results == {"w": CANCELLED_RESULT, "a": "a"}
    started = [event.call_id for event in client.events if isinstance(event, ToolCallStarted)]
    assert [client.statuses(call_id)[-1] for call_id in started] == ["failed", "completed"]


async def test_calls_that_were_named_but_not_run_say_so(autojump_clock):
    provider = script({"calls": [call("a", id="z1"), call("b", id="z2")], "hang": True}, {"text": "on"})
    tool = EchoTool()
    session, _, _ = await make_session(provider, tools=[tool])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, session, "go")
        await wait_all_tasks_blocked()
        session.cancel()
    assert tool.ran == []
    await ask(session, "next")
    results = [row.content for row in provider.requests[1].rows() if row.role == "tool"]
    assert set(results) <= {NOT_RUN_RESULT}


async def test_cancel_with_nothing_running_does_nothing():
    session, _, _ = await make_session(script({"text": "ok"}))
    session.cancel()
    assert await ask(session, "hi") == "end_turn"


async def test_giving_up_one_waiting_prompt_leaves_the_others(autojump_clock):
    provider = script({"text": "1", "delay": 1}, {"text": "3"})
    session, client, _ = await make_session(provider)
    results: dict[str, str] = {}

    async def run(name: str, ticket) -> None:
        results[name] = await session.run(ticket)

    async with trio.open_nursery() as nursery:
        tickets = {name: session.submit(prompt(name)) for name in "abc"}
        for name, ticket in tickets.items():
            nursery.start_soon(run, name, ticket)
        await wait_all_tasks_blocked()
        session.give_up(tickets["b"])
    assert results == {"a": "end_turn", "b": "cancelled", "c": "end_turn"}
    assert client.text() == "13"


async def test_close_cancels_waits_and_takes_no_more(autojump_clock):
    session, _, store = await make_session(script({"text": "par", "hang": True}))
    results: list[str] = []
    async with trio.open_nursery() as nursery:

        async def run() -> None:
            results.append(await ask(session, "go"))

        nursery.start_soon(run)
        await wait_all_tasks_blocked()
        await session.close()
        assert [entry.kind for entry in await store.entries("s")][-1] == "end"
    assert results == ["cancelled"]
    with pytest.raises(InvalidRequest):
        session.submit(prompt("more"))


async def test_a_shutdown_records_the_turn_before_it_ends(autojump_clock):
    session, _, store = await make_session(script({"text": "half an ans", "hang": True}))
    with trio.move_on_after(1):
        await ask(session, "go")
    entries = await store.entries("s")
    assert [entry.kind for entry in entries][-2:] == ["reply", "end"]
    assert b"half an ans" in entries[-2].payload
    assert b'"cancelled"' in entries[-1].payload
