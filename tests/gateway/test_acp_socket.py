"""ACP over the gateway's WebSocket, one client: the same conversations as over stdio, each frame checked."""

import json

import trio
from trio.testing import wait_all_tasks_blocked

from tests.gateway.rig import TOKEN, gateway, socket_at
from tests.process.homes import Home, call, calls, says
from tests.support.wire_talk import Talk, greet, kinds, of_kind, refused, text_of


async def test_a_conversation(home: Home):
    async with gateway(home) as it, it.connect() as agent:
        assert (await greet(agent))["protocolVersion"] == 1
        talk = await Talk.new(agent, home.work)
        assert (await talk.turn("hello")).text == "1: you said hello"
        assert (await talk.turn("again")).text == "2: you said again"


async def test_tools_and_a_permission(home: Home):
    edit = call("write_file", path="new.txt", content="made\n")
    home.script(calls(call("list_dir", path=".")), calls(edit), says("done"))
    asked: list[object] = []

    async def allow(params: dict[str, object]) -> object:
        asked.append(params["toolCall"])
        return {"outcome": {"outcome": "selected", "optionId": "allow_once"}}

    async with gateway(home) as it, it.connect({"session/request_permission": allow}) as agent:
        await greet(agent)
        talk = await Talk.new(agent, home.work)
        turn = await talk.turn("make it")
        assert [one["status"] for one in turn.calls] == ["completed", "completed"]
        assert len(asked) == 1
        assert turn.text == "done"
    assert (home.work / "new.txt").read_text() == "made\n"


async def test_a_trim_is_told(home: Home):
    home.configure(profile="max_history_messages = 2")
    async with gateway(home) as it, it.connect() as agent:
        await greet(agent)
        talk = await Talk.new(agent, home.work)
        turns = [await talk.turn(f"prompt {number}") for number in range(4)]
        trims = [of_kind(turn.updates, "history_trimmed") for turn in turns]
        assert [len(found) for found in trims] == [0, 0, 1, 1]
        assert trims[-1][0]["keptTurns"] == 2


async def test_a_session_loads_in_another_connection(home: Home):
    async with gateway(home) as it:
        async with it.connect() as agent:
            await greet(agent)
            talk = await Talk.new(agent, home.work)
            await talk.turn("remember me")
        async with it.connect() as agent:
            await greet(agent)
            replay = await talk.load(agent)
            assert text_of(replay, "user_message_chunk") == "remember me"
            assert (await talk.turn("and now")).text == "2: you said and now"


async def test_a_session_goes_on_over_stdio(home: Home):
    async with gateway(home) as it:
        async with it.connect() as agent:
            await greet(agent)
            talk = await Talk.new(agent, home.work)
            await talk.turn("over the socket")
            await agent.call("session/close", {"sessionId": talk.session_id})
        async with home.resumed(talk) as replay:
            assert text_of(replay) == "1: you said over the socket"
            assert (await talk.turn("over stdio")).text == "2: you said over stdio"


async def test_a_client_names_only_its_own_sessions(home: Home):
    async with gateway(home) as it, it.connect() as one, it.connect() as other:
        await greet(one)
        await greet(other)
        talk = await Talk.new(one, home.work)
        prompt = {"sessionId": talk.session_id, "prompt": [{"type": "text", "text": "x"}]}
        await refused(other, "session/prompt", prompt, -32002)
        await refused(other, "session/close", {"sessionId": talk.session_id}, -32002)
        nothing = {"sessionId": "sess_none", "cwd": str(home.work), "mcpServers": []}
        await refused(other, "session/load", nothing, -32002)
        await wait_all_tasks_blocked()
        assert list(it.state.hub._rooms) == [talk.session_id]
        assert (await talk.turn("mine")).stop == "end_turn"


async def test_cancel_is_heard_while_a_turn_runs(home: Home):
    home.script(says(["a"] * 1000, delay=0.05))
    async with gateway(home) as it, it.connect() as agent:
        await greet(agent)
        talk = await Talk.new(agent, home.work)
        asked = await talk.ask("talk on")
        await talk.see("agent_message_chunk")
        await talk.cancel()
        assert (await talk.end_of(asked)).stop == "cancelled"


async def test_a_frame_is_one_message_however_it_is_written(home: Home):
    async with gateway(home) as it, it.connect() as agent:
        frame = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
        agent.inbox.order.sent(frame)
        agent.inbox.conformance.frame("client", frame)
        await agent.socket.send_message(json.dumps(frame, indent=2))
        assert "result" in await agent.answer(1)


async def test_a_binary_frame_ends_the_connection(home: Home):
    async with gateway(home) as it, it.connect() as agent:
        await greet(agent)
        await agent.socket.send_message(b"{}")
        assert await agent.ended() == 1003


async def test_a_frame_that_is_too_long_ends_the_connection(home: Home):
    async with gateway(home, max_message_bytes=2000) as it, it.connect() as agent:
        await greet(agent)
        await agent.socket.send_message("x" * 3000)
        assert await agent.ended() == 1009


async def test_the_token_may_be_a_subprotocol(home: Home):
    async with gateway(home) as it:
        offered = [f"bearer.{TOKEN}", "acp"]
        async with socket_at(f"{it.url}/acp", subprotocols=offered) as socket:
            assert socket.subprotocol == "acp"
            await socket.send_message(
                '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'
            )
            with trio.fail_after(10):
                assert json.loads(await socket.get_message())["id"] == 1


async def test_the_kinds_of_a_plain_turn(home: Home):
    async with gateway(home) as it, it.connect() as agent:
        await greet(agent)
        talk = await Talk.new(agent, home.work)
        turn = await talk.turn("hello")
        assert "user_message_chunk" not in kinds(turn.updates)
