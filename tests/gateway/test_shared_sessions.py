"""Several clients of one live session: who sees what, who is asked, and what becomes of it when they go."""

import trio
from trio.testing import wait_all_tasks_blocked

from acp_server.gateway.clients import client_app
from runtime.session.session import State
from runtime.values.events import Noticed
from tests.gateway.rig import Gateway, SocketAgent, gateway
from tests.process.homes import Home, call, calls, says
from tests.support.processes import until
from tests.support.wire import PATIENCE, never
from tests.support.wire_order import Json
from tests.support.wire_talk import Talk, greet, of_kind, refused, replayed_turns, text_of

SLOWLY = says(["word "] * 400, delay=0.05)


async def joined(talk: Talk, agent: SocketAgent) -> Talk:
    """The same session, loaded by another client."""
    await greet(agent)
    other = Talk(agent, talk.session_id, talk.cwd)
    await other.load(agent)
    return other


async def opened(it: Gateway, agent: SocketAgent) -> Talk:
    """A new session of a greeted client."""
    await greet(agent)
    return await Talk.new(agent, it.home.work)


async def test_both_see_a_turn_and_only_the_other_one_the_prompt(home: Home):
    async with gateway(home) as it, it.connect() as first, it.connect(shared=True) as second:
        mine = await opened(it, first)
        other = await joined(mine, second)
        turn = await mine.turn("hello")
        await other.see("session_info_update")
        seen = other.updates()
        assert turn.text == text_of(seen) == "1: you said hello"
        assert text_of(seen, "user_message_chunk") == "hello"
        assert text_of(turn.updates, "user_message_chunk") == ""


async def test_what_was_seen_live_is_what_a_load_shows(home: Home):
    home.script(calls(call("list_dir", path=".")), says("looked"))
    async with gateway(home) as it, it.connect() as first, it.connect(shared=True) as second:
        mine = await opened(it, first)
        other = await joined(mine, second)
        await mine.turn("look")
        await other.see("session_info_update")
        live = [u["messageId"] for u in of_kind(other.updates(), "user_message_chunk", "agent_message_chunk")]
        replay = await mine.load(first)
        stored = [u["messageId"] for u in of_kind(replay, "user_message_chunk", "agent_message_chunk")]
        assert list(dict.fromkeys(live)) == stored


async def test_one_turn_at_a_time(home: Home):
    async with gateway(home) as it, it.connect(shared=True) as first, it.connect(shared=True) as second:
        mine = await opened(it, first)
        other = await joined(mine, second)
        asked = [await mine.ask("one"), await other.ask("two"), await mine.ask("three")]
        await mine.end_of(asked[0])
        await other.end_of(asked[1])
        await mine.end_of(asked[2])
        await other.see("agent_message_chunk", content={"type": "text", "text": "3: you said three"})
        turns = [turn.text for turn in replayed_turns(await other.load(second))]
        assert sorted(turns) == sorted(set(turns))
        assert len(turns) == 3


async def test_either_may_cancel(home: Home):
    home.script(SLOWLY)
    async with gateway(home) as it, it.connect() as first, it.connect(shared=True) as second:
        mine = await opened(it, first)
        other = await joined(mine, second)
        asked = await mine.ask("talk on")
        await other.see("agent_message_chunk")
        await other.cancel()
        assert (await mine.end_of(asked)).stop == "cancelled"


async def test_who_comes_in_the_middle_sees_the_whole_turn(home: Home):
    home.script(calls(call("list_dir", path=".")), says([f"{n} " for n in range(60)], delay=0.02))
    async with gateway(home) as it, it.connect() as first, it.connect(shared=True) as second:
        mine = await opened(it, first)
        await mine.turn("/help")
        asked = await mine.ask("count")
        await mine.see("agent_message_chunk", content={"type": "text", "text": "5 "})
        other = await joined(mine, second)
        turn = await mine.end_of(asked)
        await second.until(lambda frame: frame.get("method") and "59 " in str(frame))
        seen = other.updates()
        assert text_of(seen).endswith("".join(f"{n} " for n in range(60)))
        assert text_of(seen).count("30 ") == 1
        assert text_of(seen, "user_message_chunk").count("count") == 1
        assert len(of_kind(seen, "tool_call")) == len(turn.calls) == 1


async def test_a_question_goes_to_the_one_who_prompted(home: Home):
    home.script(calls(call("write_file", path="a.txt", content="x")), says("done"))

    async def allow(params: Json) -> object:
        return {"outcome": {"outcome": "selected", "optionId": "allow_once"}}

    async with gateway(home) as it:
        handlers = {"session/request_permission": allow}
        async with it.connect(handlers) as first, it.connect(shared=True) as second:
            mine = await opened(it, first)
            other = await joined(mine, second)  # the newest, and it would fail at any question
            assert (await mine.turn("write")).text == "done"
            await other.see("agent_message_chunk")
    assert (home.work / "a.txt").read_text() == "x"


async def test_a_question_moves_on_when_the_one_who_was_asked_goes(home: Home):
    home.script(calls(call("write_file", path="a.txt", content="x")), says("done"))
    asked = trio.Event()

    async def allow(params: Json) -> object:
        asked.set()
        return {"outcome": {"outcome": "selected", "optionId": "allow_once"}}

    async with gateway(home) as it, it.connect({"session/request_permission": allow}, shared=True) as second:
        async with it.connect({"session/request_permission": never}) as first:
            mine = await opened(it, first)
            other = await joined(mine, second)
            await mine.ask("write")
            await first.until(lambda frame: frame.get("method") == "session/request_permission")
            assert not asked.is_set()
        await other.see("agent_message_chunk", content={"type": "text", "text": "done"})
    assert (home.work / "a.txt").read_text() == "x"


async def test_a_turn_goes_on_when_its_client_goes(home: Home):
    home.script(says(["a"] * 20, delay=0.1))
    async with gateway(home) as it:
        async with it.connect() as agent:
            mine = await opened(it, agent)
            await mine.ask("go on")
            await mine.see("agent_message_chunk")
        async with it.connect(shared=True) as agent:
            other = await joined(mine, agent)
            with trio.fail_after(PATIENCE):
                await until(lambda: it.state.app.sessions[mine.session_id].state is State.IDLE)
            await agent.call("session/list", {})  # behind it, all that was live has come
            assert text_of(replayed_turns(await other.load(agent))[0].updates) == "a" * 20


async def test_a_turn_that_nobody_comes_back_to_is_cancelled(home: Home):
    home.script(SLOWLY)
    async with gateway(home, detached_turn_seconds=0) as it:
        async with it.connect() as agent:
            mine = await opened(it, agent)
            await mine.ask("talk on")
            await mine.see("agent_message_chunk")
        with trio.fail_after(PATIENCE):
            await until(lambda: not it.state.app.sessions)
        async with home.resumed(mine) as replay:
            assert 0 < len(text_of(replay)) < 400 * len("word ")
            assert (await mine.turn("/help")).stop == "end_turn"


async def test_an_idle_session_is_closed_with_its_last_client(home: Home):
    async with gateway(home) as it:
        async with it.connect() as agent:
            await (await opened(it, agent)).turn("hello")
            assert len(it.state.app.sessions) == 1
        with trio.fail_after(PATIENCE):
            await until(lambda: not it.state.app.sessions)


async def test_who_closes_only_lets_go(home: Home):
    async with gateway(home) as it, it.connect() as first, it.connect(shared=True) as second:
        mine = await opened(it, first)
        other = await joined(mine, second)
        await first.call("session/close", {"sessionId": mine.session_id})
        since = len(first.frames)
        assert (await other.turn("still here")).text == "1: you said still here"
        assert len(first.frames) == since
        await refused(first, "session/load", {"sessionId": "x", "cwd": "/", "mcpServers": []}, -32002)


async def test_a_deleted_session_is_gone_for_both(home: Home):
    async with gateway(home) as it, it.connect() as first, it.connect(shared=True) as second:
        mine = await opened(it, first)
        other = await joined(mine, second)
        await mine.turn("hello")
        await second.call("session/delete", {"sessionId": other.session_id})
        prompt = {"sessionId": mine.session_id, "prompt": [{"type": "text", "text": "x"}]}
        await refused(first, "session/prompt", prompt, -32002)
        assert (await first.call("session/list", {}))["sessions"] == []


async def test_the_others_hear_of_what_one_sets(home: Home):
    async with gateway(home) as it, it.connect() as first, it.connect(shared=True) as second:
        mine = await opened(it, first)
        other = await joined(mine, second)
        await first.call("session/set_mode", {"sessionId": mine.session_id, "modeId": "yolo"})
        await other.see("current_mode_update", currentModeId="yolo")
        chosen = {"sessionId": mine.session_id, "configId": "profile", "value": "tight"}
        await first.call("session/set_config_option", chosen)
        await second.until(lambda frame: profile_in(frame) == "tight")


def profile_in(frame: Json) -> object:
    """The profile that an update of the options says is set."""
    update = frame.get("params", {}).get("update", {})
    return {option["id"]: option["currentValue"] for option in update.get("configOptions", ())}.get("profile")


async def test_who_does_not_read_is_cut_and_the_others_go_on(home: Home, monkeypatch):
    monkeypatch.setattr(client_app, "SLOW_SECONDS", 3.0)
    home.script(says(["x" * 100_000] * 120))
    async with gateway(home) as it, it.connect() as first, it.connect(shared=True) as second:
        mine = await opened(it, first)
        await joined(mine, second)
        second.inbox.pause()
        turn = await mine.turn("flood")
        assert turn.stop == "end_turn"
        assert len(turn.text) == 120 * 100_000
        second.inbox.unpause()
        with trio.fail_after(PATIENCE):
            await second.inbox.ended.wait()


async def test_what_another_process_wrote_is_delivered(home: Home):
    async with gateway(home) as it, it.connect(shared=True) as agent:
        talk = await opened(it, agent)
        await it.state.hub.deliver(talk.session_id, Noticed("info", "Elsewhere", "something happened"))
        await wait_all_tasks_blocked()
        await talk.see("agent_thought_chunk")
