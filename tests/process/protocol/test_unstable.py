"""What ACP has not settled yet: there only for those who ask for it, and then by the unstable schema."""

import pytest

from tests.process.homes import Home, says
from tests.support.wire import Agent, Refused
from tests.support.wire_order import Json
from tests.support.wire_talk import Talk, greet, refused, text_of

WANTED: Json = {"_meta": {"wholeturn": {"unstable": True}}}


async def forked(agent: Agent, talk: Talk) -> Talk:
    """`session/fork`; the new session."""
    result = await agent.call("session/fork", {"sessionId": talk.session_id, "cwd": str(talk.cwd)})
    assert result["sessionId"] != talk.session_id
    return Talk(agent, result["sessionId"], talk.cwd)


async def test_nobody_who_did_not_ask_gets_any_of_it(home: Home) -> None:
    home.script(says("a", usage={"input": 10, "output": 5}))
    async with home.start() as agent:
        capabilities = (await greet(agent))["agentCapabilities"]
        assert "fork" not in capabilities["sessionCapabilities"]
        talk = await Talk.new(agent, home.work)
        asked = await talk.ask("one")
        assert set((await agent.answer(asked))["result"]) == {"stopReason"}
        params = {"sessionId": talk.session_id, "cwd": str(home.work)}
        await refused(agent, "session/fork", params, -32601)


@pytest.mark.parametrize("how", ["client", "variable"])
async def test_a_fork_goes_its_own_way(home: Home, how: str) -> None:
    """It knows all that was said, the two do not hear of each other, and both are listed and loaded."""
    home.script(echo="{turn}: {last}")
    if how == "variable":
        home.extra_env["WHOLETURN_UNSTABLE"] = "1"
    async with home.start(edition="schema-v1-unstable") as agent:
        greeted = await greet(agent, WANTED if how == "client" else None)
        assert greeted["agentCapabilities"]["sessionCapabilities"]["fork"] == {}
        talk = await Talk.new(agent, home.work)
        await talk.turn("one")
        other = await forked(agent, talk)
        assert other.updates(0, len(agent.frames)) == [] or {
            update["sessionUpdate"] for update in other.updates()
        } <= {"available_commands_update", "usage_update"}
        assert (await other.turn("left")).text == "2: left"
        assert (await talk.turn("right")).text == "2: right"
        listed = {entry["sessionId"] for entry in (await agent.call("session/list", {}))["sessions"]}
        assert listed == {talk.session_id, other.session_id}
    async with home.start() as agent:
        await greet(agent)
        for one, words in ((talk, "oneright"), (other, "oneleft")):
            assert text_of(await one.load(agent), "user_message_chunk") == words


async def test_a_fork_of_what_is_not_there_or_elsewhere(home: Home) -> None:
    async with home.start(edition="schema-v1-unstable") as agent:
        await greet(agent, WANTED)
        talk = await Talk.new(agent, home.work)
        known = {"sessionId": talk.session_id, "cwd": str(home.work)}
        await refused(agent, "session/fork", {**known, "sessionId": "sess_nobody"}, -32002)
        await refused(agent, "session/fork", {**known, "cwd": str(home.spawn)}, -32602)
        await refused(agent, "session/fork", {"sessionId": talk.session_id}, -32602)
        with pytest.raises(Refused):
            await agent.call("session/load", {**known, "sessionId": "sess_nobody", "mcpServers": []})


async def test_the_usage_of_a_turn_is_that_of_all_its_replies(home: Home) -> None:
    from tests.process.homes import call, calls

    (home.work / "a.txt").write_text("seven")
    home.script(
        calls(call("read_file", path="a.txt"), usage={"input": 100, "output": 5, "cached": 40}),
        says("7", usage={"input": 200, "output": 7}),
        says("8", usage={"input": 300, "output": 1}),
        says("nothing is known of this one"),
    )
    async with home.start(edition="schema-v1-unstable") as agent:
        await greet(agent, WANTED)
        talk = await Talk.new(agent, home.work)
        results = [(await agent.answer(await talk.ask(text)))["result"] for text in ("one", "two", "/help")]
        assert results[0]["usage"] == {
            "totalTokens": 312,
            "inputTokens": 300,
            "outputTokens": 12,
            "cachedReadTokens": 40,
            "cachedWriteTokens": 0,
        }
        assert results[1]["usage"]["inputTokens"] == 300
        assert "usage" not in results[2]
