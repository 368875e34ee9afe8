"""The client's checklist, part 3: stopping. One response, all calls final, and the next prompt works.

That the calls are final and the response single is checked on every connection (`wire_order`).
"""

import pytest
import trio

from tests.process.homes import Home, call, calls, says
from tests.process.models import answers, hangs, rows_of
from tests.support.fakes_llm import fake_server
from tests.support.wire import Refused, never
from tests.support.wire_order import Json
from tests.support.wire_talk import READS_FILES, Talk, Turn, greet, text_of

SOON = 2.0
"""Seconds for the answer to a cancel."""
EDITOR = {"fs/read_text_file": never}
"""An editor that lends its buffers and then does not answer: a tool that hangs."""


async def stopped(talk: Talk, request_id: int, since: int = 0) -> Turn:
    """Cancel; the turn must end as cancelled, and soon."""
    started = trio.current_time()
    await talk.cancel()
    turn = await talk.end_of(request_id, since)
    assert turn.stop == "cancelled"
    assert trio.current_time() - started < SOON
    return turn


async def works(talk: Talk) -> None:
    """The next prompt is answered."""
    turn = await talk.turn("go on")
    assert (turn.stop, turn.text) == ("end_turn", "yes")


async def test_cancel_before_the_first_token(home: Home) -> None:
    home.script(says("never", delay=600, when="slow"), echo="yes")
    async with home.talk() as talk:
        turn = await stopped(talk, await talk.ask("slow"))
        assert turn.text == ""
        await works(talk)


async def test_cancel_in_a_stream(home: Home) -> None:
    home.script(says(["half ", "an answer"], hang=True), echo="yes")
    async with home.talk() as talk:
        asked = await talk.ask("go")
        await talk.see("agent_message_chunk")
        assert (await stopped(talk, asked)).text == "half an answer"
        await works(talk)


async def test_b092_cancel_drops_the_connection_to_a_server_that_hangs(home: Home) -> None:
    """The mark of a running turn goes with it, and the model sees what it had said."""
    async with fake_server(hangs("half"), answers("yes")) as server:
        home.model_at(server.base_url)
        async with home.talk() as talk:
            asked = await talk.ask("go")
            await talk.see("agent_message_chunk")
            await stopped(talk, asked)
            with trio.fail_after(SOON):
                await server.client_left.wait()
            await works(talk)
        assert rows_of(server)[1]["content"].startswith("half")


async def test_cancel_in_a_tool(home: Home) -> None:
    home.script(calls(call("read_file", path="a.txt"), call("list_dir", path=".")), echo="yes")
    async with home.talk(READS_FILES, handlers=EDITOR) as talk:
        asked = await talk.ask("go")
        await talk.see("tool_call_update", status="completed")
        turn = await stopped(talk, asked)
        assert [shown["status"] for shown in turn.calls] == ["failed", "completed"]
        assert "cancelled" in turn.calls[0]["content"][0]["content"]["text"]
        assert await talk.agent.until(lambda frame: frame.get("method") == "$/cancel_request")
        await works(talk)


async def test_cancel_twice_is_cancel_once(home: Home) -> None:
    home.script(says("half", hang=True), echo="yes")
    async with home.talk() as talk:
        asked = await talk.ask("go")
        await talk.see("agent_message_chunk")
        await talk.cancel()
        await stopped(talk, asked)
        await works(talk)


async def test_cancel_after_the_end_and_of_an_unknown_session_do_nothing(home: Home) -> None:
    home.script(echo="yes")
    async with home.talk() as talk:
        await talk.cancel()
        await works(talk)
        await talk.cancel()
        await talk.agent.notify("session/cancel", {"sessionId": "nobody"})
        await works(talk)


async def test_cancel_at_once_behind_the_prompt(home: Home) -> None:
    """No turn answers with anything but `cancelled`, however early the cancel is read."""
    home.script(says("never", delay=600, repeat=True, when="now"), echo="yes")
    async with home.talk() as talk:
        for _ in range(5):
            await stopped(talk, await talk.ask("now"))
        await works(talk)


async def test_a_second_prompt_waits_and_cancel_clears_the_queue(home: Home) -> None:
    home.script(says("half", hang=True), echo="yes")
    async with home.talk() as talk:
        asked = [await talk.ask("one")]
        await talk.see("agent_message_chunk")
        asked += [await talk.ask("two"), await talk.ask("three")]
        await talk.cancel()
        assert [(await talk.end_of(number)).stop for number in asked] == ["cancelled"] * 3
        await works(talk)


async def test_b086_queued_prompts_run_in_their_order(home: Home) -> None:
    """Each sees the whole turns before it: no row is lost or doubled."""
    async with fake_server(answers("1"), answers("2"), answers("3")) as server:
        home.model_at(server.base_url)
        async with home.talk() as talk:
            asked = [await talk.ask("one"), await talk.ask("two"), await talk.ask("three")]
            assert [(await talk.end_of(number)).stop for number in asked] == ["end_turn"] * 3
            assert text_of(talk.updates()) == "123"
        assert [row["content"] for row in rows_of(server)] == ["one", "1", "two", "2", "three"]


async def test_cancel_request_on_a_prompt_is_a_cancel(home: Home) -> None:
    """Of that prompt alone: the one that waits behind it runs."""
    home.script(says("half", hang=True), echo="yes")
    async with home.talk() as talk:
        first = await talk.ask("one")
        await talk.see("agent_message_chunk")
        second = await talk.ask("two")
        await talk.agent.notify("$/cancel_request", {"requestId": first})
        assert (await talk.end_of(first)).stop == "cancelled"
        assert (await talk.end_of(second)).stop == "end_turn"


async def test_cancel_request_on_a_prompt_that_waits(home: Home) -> None:
    home.script(says(["half"], hang=True), echo="yes")
    async with home.talk() as talk:
        first = await talk.ask("one")
        await talk.see("agent_message_chunk")
        second = await talk.ask("two")
        await talk.agent.notify("$/cancel_request", {"requestId": second})
        assert (await talk.end_of(second)).stop == "cancelled"
        await stopped(talk, first)
        await works(talk)


async def test_cancel_request_on_a_load_is_32800_and_the_session_is_whole(home: Home) -> None:
    """The replay is far larger than the pipe, and this client does not read until it has given up."""
    home.script(says("x" * 400_000, repeat=True, when="much"), echo="yes")
    async with home.talk() as talk:
        for _ in range(20):
            await talk.turn("much")
    async with home.start() as agent:
        await greet(agent)
        params = {"sessionId": talk.session_id, "cwd": str(home.work), "mcpServers": []}
        agent.inbox.pause()
        request_id = await agent.request("session/load", params)
        await agent.notify("$/cancel_request", {"requestId": request_id})
        agent.inbox.unpause()
        with pytest.raises(Refused) as caught:
            await agent.result(request_id)
        assert caught.value.code == -32800
        assert len(text_of(await talk.load(agent))) == 20 * 400_000
        await works(talk)


async def test_cancel_request_with_an_unknown_id_does_nothing(home: Home) -> None:
    home.script(echo="yes")
    async with home.talk() as talk:
        wrong: list[Json] = [{"requestId": 4711}, {"requestId": "101"}, {"requestId": None}]
        for params in wrong:
            await talk.agent.notify("$/cancel_request", params)
        await talk.agent.send(
            {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": [1]}}, valid=False
        )
        await works(talk)
