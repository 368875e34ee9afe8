"""What clients of one session may not do to each other, and what becomes of a turn that some leave."""

import trio
from trio.testing import wait_all_tasks_blocked

from acp_server.gateway.sessions.shared_session import Room
from runtime.ports import Client
from runtime.session.session import State
from runtime.values.events import Event
from tests.gateway.rig import Gateway, SocketAgent, gateway
from tests.gateway.test_shared_sessions import joined, opened
from tests.process.homes import Home, call, calls, says
from tests.support.fakes import RecordingClient
from tests.support.processes import until
from tests.support.wire import PATIENCE, never
from tests.support.wire_order import Json
from tests.support.wire_talk import greet, refused, text_of

NEW = {"protocolVersion": 1, "clientCapabilities": {}}
SLOWLY = says(["word "] * 400, chunk_delay=0.05)
QUESTION = "session/request_permission"


async def allow(params: Json) -> object:
    """A person who says yes."""
    return {"outcome": {"outcome": "selected", "optionId": "allow_once"}}


async def state_is(it: Gateway, session_id: str, state: State) -> None:
    """Wait for it."""
    with trio.fail_after(PATIENCE):
        await until(lambda: it.state.app.sessions[session_id].state is state)


async def asked_of(agent: SocketAgent) -> None:
    """Wait until it was asked."""
    await agent.until(lambda frame: frame.get("method") == QUESTION)


async def test_a_question_moves_on_when_the_one_who_was_asked_closes_the_session(home: Home):
    home.script(calls(call("write_file", path="a.txt", content="x")), says("done"))
    async with (
        gateway(home) as it,
        it.connect({QUESTION: allow}, shared=True) as last,
        it.connect({QUESTION: never}, shared=True) as second,
    ):
        async with it.connect({QUESTION: never}) as first:
            mine = await opened(it, first)
            other = await joined(mine, last)
            await joined(mine, second)
            await mine.ask("write")
            await asked_of(first)
        await asked_of(second)
        await second.call("session/close", {"sessionId": mine.session_id})
        await other.see("agent_message_chunk", content={"type": "text", "text": "done"})
    assert (home.work / "a.txt").read_text() == "x"


class Someone:
    """A guest that says nothing."""

    gone = False

    def __init__(self) -> None:
        self.client: Client = RecordingClient()

    async def tell(self, session_id: str, event: Event) -> None:
        """See Guest."""

    def let_go(self, session_id: str) -> None:
        """See Guest."""


async def test_a_question_waits_for_who_loads_once_more_and_for_nobody_who_is_gone(autojump_clock):
    first, second = Someone(), Someone()
    room, asked = Room("s", lambda room: None), list[Client]()

    async def question(client: Client) -> str:
        asked.append(client)
        if client is first.client:
            await trio.sleep_forever()
        return "yes"

    room.join(second)
    room.join(first)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(room.ask, question, "nothing")
        await wait_all_tasks_blocked()
        room.join(first, behind=True)
        await wait_all_tasks_blocked()
        assert asked == [first.client]
        room.leave(first)
    assert asked == [first.client, second.client]


async def test_who_has_not_opened_a_session_cannot_cancel_in_it(home: Home):
    home.script(says(["a"] * 20, chunk_delay=0.05))
    async with gateway(home) as it, it.connect() as first, it.connect() as stranger:
        mine = await opened(it, first)
        await greet(stranger)
        asked = await mine.ask("go on")
        await mine.see("agent_message_chunk")
        await stranger.notify("session/cancel", {"sessionId": mine.session_id})
        await stranger.call("session/list", {})
        assert (await mine.end_of(asked)).stop == "end_turn"


async def test_who_comes_back_in_vain_does_not_cost_the_turn_its_time(home: Home):
    home.script(SLOWLY)
    async with gateway(home, detached_turn_seconds=1000) as it:
        async with it.connect() as first:
            mine = await opened(it, first)
            await mine.ask("talk on")
            await mine.see("agent_message_chunk")
        room = it.state.hub.room(mine.session_id)
        with trio.fail_after(PATIENCE):
            await until(lambda: room.empty)
        async with it.connect() as second:
            await greet(second)
            wrong = {"sessionId": mine.session_id, "cwd": str(home.root), "mcpServers": []}
            await refused(second, "session/load", wrong, -32602)
            assert room.empty
            await second.call("session/list", {})
            await wait_all_tasks_blocked(0.01)
            assert it.state.app.sessions[mine.session_id].state is State.RUNNING


async def test_a_session_is_closed_behind_the_last_of_several_prompts(home: Home):
    home.script(says(["a"] * 4, chunk_delay=0.1), says(["b"] * 4, chunk_delay=0.1))
    async with gateway(home, detached_turn_seconds=1000) as it:
        async with it.connect() as agent:
            mine = await opened(it, agent)
            await mine.ask("one")
            await mine.ask("two")
            await mine.see("agent_message_chunk")
        with trio.fail_after(PATIENCE):
            await until(lambda: not it.state.app.sessions)
        async with home.resumed(mine) as replay:
            assert text_of(replay) == "aaaabbbb"


async def test_a_greeting_in_the_middle_of_opening_a_session(home: Home):
    """Either it comes too late, or the session has its client all the same."""
    async with gateway(home) as it, it.connect(shared=True) as agent:
        await greet(agent)
        made = await agent.request("session/new", {"cwd": str(home.work), "mcpServers": []})
        again = await agent.request("initialize", NEW)
        await agent.answer(again)
        session_id = (await agent.answer(made))["result"]["sessionId"]
        prompt = {"sessionId": session_id, "prompt": [{"type": "text", "text": "hello"}]}
        assert (await agent.call("session/prompt", prompt))["stopReason"] == "end_turn"
