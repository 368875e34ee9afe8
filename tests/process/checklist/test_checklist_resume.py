"""The client's checklist, part 3: sessions that come back without a replay, elsewhere, or not at all."""

import pytest

from tests.process.homes import Home, call, calls, says
from tests.support.wire import Agent, Refused
from tests.support.wire_order import Json
from tests.support.wire_talk import Talk, greet, kinds, of_kind, refused, text_of

TIGHT = "max_history_messages = 1"


async def resumed(agent: Agent, talk: Talk, **more: object) -> list[Json]:
    """`session/resume` on a greeted connection; what was said of the session before its response."""
    talk.agent, since = agent, len(agent.frames)
    params = {"sessionId": talk.session_id, "cwd": str(talk.cwd), **more}
    request_id = await agent.request("session/resume", params)
    frame = await agent.answer(request_id)
    if "error" in frame:
        raise Refused(frame["error"])
    return talk.updates(since, agent.frames.index(frame))


async def test_resume_nothing_before_the_response_and_the_conversation_goes_on(home: Home) -> None:
    """Then the commands and the meter; `mcpServers` may be left out."""
    home.script(echo="{turn}: {last}")
    async with home.talk() as talk:
        await talk.turn("one")
    async with home.start() as agent:
        await greet(agent)
        assert await resumed(agent, talk) == []
        await talk.see("available_commands_update")
        assert set(kinds(talk.updates())) <= {"available_commands_update", "usage_update"}
        assert (await talk.turn("two")).text == "2: two"
        replay = await talk.load(agent)
        assert text_of(replay, "user_message_chunk") == "onetwo"


async def test_resume_a_trim_that_became_due_is_the_first_update_of_the_next_turn(home: Home) -> None:
    async with home.talk() as talk:
        for text in ("one", "two", "three"):
            await talk.turn(text)
    home.configure(profile=TIGHT)
    async with home.start() as agent:
        await greet(agent)
        assert await resumed(agent, talk) == []
        turn = await talk.turn("four")
        assert kinds(turn.updates)[0] == "history_trimmed"
        assert turn.updates[0]["droppedMessages"] == 6
        assert not of_kind((await talk.turn("/help")).updates, "history_trimmed")


async def test_resume_of_what_is_open_is_quiet_too(home: Home) -> None:
    async with home.talk() as talk:
        await talk.turn("one")
        assert await resumed(talk.agent, talk) == []
        assert (await talk.turn("two")).stop == "end_turn"


async def test_resume_refuses_what_load_refuses(home: Home) -> None:
    async with home.talk() as talk:
        agent, known = talk.agent, {"sessionId": talk.session_id, "cwd": str(home.work)}
        await refused(agent, "session/resume", {**known, "sessionId": "sess_nobody"}, -32002)
        await refused(agent, "session/resume", {**known, "cwd": str(home.spawn)}, -32602)
        await refused(agent, "session/resume", {**known, "cwd": "here"}, -32602)
        await refused(agent, "session/resume", {**known, "mcpServers": [{"type": "smoke"}]}, -32602)
        await refused(agent, "session/resume", {"sessionId": talk.session_id}, -32602)


# ---------------------------------------------------------------- more folders


async def refuses(params: Json) -> object:
    """A person who allows nothing."""
    raise Refused({"code": -32603, "message": "no"})


async def content_of(talk: Talk, prompt: str) -> tuple[str, str]:
    """Status and content of the one call of a turn."""
    shown = (await talk.turn(prompt)).calls[0]
    return shown["status"], shown["content"][0]["content"]["text"]


async def test_more_folders_are_open_to_the_tools_as_long_as_they_are_given(home: Home) -> None:
    """They are listed with the session, and not restored unless a load names them again."""
    other = home.root / "other"
    other.mkdir()
    (other / "b.txt").write_text("from the other folder")
    home.script(calls(call("read_file", path=str(other / "b.txt"))), says("ok"), loop=True)
    async with home.start(handlers={"session/request_permission": refuses}) as agent:
        await greet(agent)
        params = {"cwd": str(home.work), "mcpServers": [], "additionalDirectories": [str(other)]}
        talk = Talk(agent, (await agent.call("session/new", params))["sessionId"], home.work)
        assert await content_of(talk, "read") == ("completed", "1|from the other folder")
        entry = (await agent.call("session/list", {}))["sessions"][0]
        assert entry["additionalDirectories"] == [str(other)]
        await talk.load(agent)
        assert (await content_of(talk, "read"))[0] == "failed"
        assert "additionalDirectories" not in (await agent.call("session/list", {}))["sessions"][0]
    async with home.start() as agent:
        await greet(agent)
        await resumed(agent, talk, additionalDirectories=[str(other)])
        assert await content_of(talk, "read") == ("completed", "1|from the other folder")
    async with home.start() as agent:
        await greet(agent)
        entry = (await agent.call("session/list", {}))["sessions"][0]
        assert entry["additionalDirectories"] == [str(other)]


@pytest.mark.parametrize("method", ["session/new", "session/load", "session/resume"])
async def test_a_folder_that_is_no_absolute_path_is_refused(home: Home, method: str) -> None:
    """An empty list names none, and so does the null that older clients send."""
    async with home.talk() as talk:
        known = {"cwd": str(home.work), "mcpServers": []}
        known |= {} if method == "session/new" else {"sessionId": talk.session_id}
        bad: list[object] = [["other"], [""], ["./x"], [7], [None], "other", ["/a\0b"]]
        for folders in bad:
            await refused(talk.agent, method, {**known, "additionalDirectories": folders}, -32602)
        await talk.agent.call(method, {**known, "additionalDirectories": []})


# ---------------------------------------------------------------- delete


async def test_delete_removes_a_session_for_good_also_one_that_is_open(home: Home) -> None:
    """What runs in it is cancelled first; to delete what is not there is a success."""
    home.script(says(["half "], hang=True), echo="never")
    async with home.talk() as talk:
        agent = talk.agent
        asked = await talk.ask("go")
        await talk.see("agent_message_chunk")
        assert await agent.call("session/delete", {"sessionId": talk.session_id}) == {}
        assert (await talk.end_of(asked)).stop == "cancelled"
        assert (await agent.call("session/list", {}))["sessions"] == []
        for session_id in (talk.session_id, "sess_nobody"):
            assert await agent.call("session/delete", {"sessionId": session_id}) == {}
        with pytest.raises(Refused) as caught:
            await talk.load(agent)
        assert caught.value.code == -32002
    async with home.start() as agent:
        await greet(agent)
        assert (await agent.call("session/list", {}))["sessions"] == []


async def test_delete_of_one_session_leaves_the_others(home: Home) -> None:
    async with home.talk() as first:
        second = await Talk.new(first.agent, home.work)
        await second.turn("keep me")
        await first.agent.call("session/delete", {"sessionId": first.session_id})
        assert (await second.turn("still here")).stop == "end_turn"
        listed = (await first.agent.call("session/list", {}))["sessions"]
        assert [entry["sessionId"] for entry in listed] == [second.session_id]


# ---------------------------------------------------------------- back to a turn


async def test_a_rewind_is_another_session_that_ends_there_also_before_a_trim(home: Home) -> None:
    """Nothing is destroyed; the new one is listed, loads, and its model sees what was dropped later."""
    home.configure(profile="max_history_messages = 2")
    home.script(echo="{turn}: {last}")
    async with home.talk() as talk:
        for text in ("one", "two", "three", "four"):
            await talk.turn(text)
        told = (await talk.turn("/rewind 2")).text
        listed = (await talk.agent.call("session/list", {}))["sessions"]
        made = next(entry for entry in listed if entry["sessionId"] != talk.session_id)
        assert made["sessionId"] in told
        assert made["title"] == "one (to turn 2)"
        other = Talk(talk.agent, made["sessionId"], talk.cwd)
        replay = await other.load(talk.agent)
        assert text_of(replay, "user_message_chunk") == "onetwo"
        assert not any("_meta" in update for update in replay)
        assert (await other.turn("and then?")).stop == "end_turn"
        assert text_of(await talk.load(talk.agent), "user_message_chunk") == "onetwothreefour/rewind 2"
