"""The client's checklist, part 2: sessions on one connection, and what this client may be sent."""

import pytest

from tests.process.homes import Home, call, calls, says
from tests.support.wire import Refused
from tests.support.wire_order import TRIM_META, Json
from tests.support.wire_talk import READS_FILES, Talk, greet, kinds, of_kind, text_of

TIGHT = "max_history_messages = 1"
"""Every second prompt pushes a turn out."""


async def test_b090_nothing_before_the_response_of_session_new(home: Home) -> None:
    """The order is checked on every connection; here also that the commands do come, right behind it."""
    async with home.start() as agent:
        await greet(agent)
        request_id = await agent.request("session/new", {"cwd": str(home.work), "mcpServers": []})
        response = await agent.answer(request_id)
        talk = Talk(agent, response["result"]["sessionId"], home.work)
        await talk.see("available_commands_update")
        assert agent.frames.index(response) == 1


async def test_load_the_last_line_of_the_replay_precedes_the_response(home: Home) -> None:
    """And what is said of the session behind it is no part of the transcript."""
    (home.work / "a.txt").write_text("seven")
    home.script(
        {"thought": "hm", **says("one moment")}, calls(call("read_file", path="a.txt")), says("it says 7")
    )
    async with home.talk() as talk:
        await talk.turn("greet me")
        await talk.turn("read it")
    async with home.resumed(talk) as replay:
        wanted = ["user_message_chunk", "agent_thought_chunk", "agent_message_chunk"]
        assert kinds(replay) == [*wanted, "user_message_chunk", "tool_call", "agent_message_chunk"]
        since = len(talk.agent.frames)
        await talk.see("available_commands_update")
        assert set(kinds(talk.updates(since))) <= {"usage_update", "available_commands_update"}


async def test_a_load_shows_all_that_was_seen_live_with_the_same_ids(home: Home) -> None:
    (home.work / "a.txt").write_text("seven")
    home.script(
        calls(call("read_file", path="a.txt"), call("read_file", path="nowhere.txt"), thought="look"),
        says(["it ", "says ", "7"]),
    )
    async with home.talk() as talk:
        turn = await talk.turn("read it")
    async with home.resumed(talk) as replay:
        for kind in ("agent_message_chunk", "agent_thought_chunk"):
            assert text_of(replay, kind) == text_of(turn.updates, kind)
            live = {update["messageId"] for update in of_kind(turn.updates, kind)}
            assert {update["messageId"] for update in of_kind(replay, kind)} == live
        shown = of_kind(replay, "tool_call")
        assert [call["status"] for call in shown] == ["completed", "failed"]
        for again, before in zip(shown, turn.calls, strict=True):
            assert {**before, "sessionUpdate": "tool_call"} == again


async def test_b079_loading_a_session_that_is_open_replays_and_shares_it(home: Home) -> None:
    """The user's words come with the load alone: a live turn does not repeat them (checked everywhere)."""
    async with home.talk() as talk:
        await talk.turn("one")
        replay = await talk.load(talk.agent)
        assert text_of(replay, "user_message_chunk") == "one"
        assert (await talk.turn("two")).text == "2: you said two"


async def test_two_sessions_at_once_in_different_folders(home: Home) -> None:
    """Each works in its own, whatever directory the process has."""
    folders = [home.work / "first", home.work / "second"]
    for folder in folders:
        folder.mkdir()
        (folder / "name.txt").write_text(f"I am {folder.name}")
    read = calls(call("read_file", path="name.txt"), delay=0.2)
    home.script(read, read, echo="{last}")
    async with home.start() as agent:
        await greet(agent)
        talks = [await Talk.new(agent, folder) for folder in folders]
        asked = [await talk.ask(f"who are you, {talk.cwd.name}?") for talk in talks]
        for talk, request_id in zip(talks, asked, strict=True):
            turn = await talk.end_of(request_id)
            assert turn.text == f"who are you, {talk.cwd.name}?"
            assert turn.calls[0]["content"][0]["content"]["text"] == f"1|I am {talk.cwd.name}"
        page = await agent.call("session/list", {"cwd": str(folders[1])})
        assert [entry["sessionId"] for entry in page["sessions"]] == [talks[1].session_id]


NOTHING: list[Json] = [
    {"fs": {"writeTextFile": True}, "terminal": False, "elicitation": {}},
    {"fs": {}, "elicitation": {"form": None, "url": {}}},
    {},
]


@pytest.mark.parametrize("offers", NOTHING)
async def test_a_client_without_files_terminal_and_forms_is_never_asked_for_them(
    home: Home, offers: Json
) -> None:
    """This client answers no call at all: one would fail the test. The disk is read, commands run here."""
    (home.work / "a.txt").write_text("from the disk")
    wanted = (
        call("read_file", path="a.txt"),
        call("run_command", command="echo ran"),
        call("ask_user", question="which?"),
    )
    home.script(calls(*wanted), says("ok"))
    async with home.talk(offers) as talk:
        await talk.agent.call("session/set_mode", {"sessionId": talk.session_id, "modeId": "yolo"})
        turn = await talk.turn("read")
        texts = [shown["content"][0]["content"]["text"] for shown in turn.calls]
    assert texts[0] == "1|from the disk"
    assert texts[1].startswith("ran\n")
    assert texts[2].startswith("There is no tool named 'ask_user'.")


async def test_a_client_with_files_is_asked_and_the_disk_stands_in_for_its_errors(home: Home) -> None:
    (home.work / "a.txt").write_text("from the disk")
    answers: list[object] = [{"content": "unsaved"}, Refused({"code": -32603, "message": "no"}), None, {}]

    async def read(params: Json) -> object:
        assert params["path"] == str(home.work / "a.txt")
        answer = answers.pop(0)
        if isinstance(answer, Refused):
            raise answer
        return answer

    home.script(*[calls(call("read_file", path="a.txt"))] * 4, says("ok"))
    async with home.talk(READS_FILES, handlers={"fs/read_text_file": read}) as talk:
        turn = await talk.turn("read")
        texts = [shown["content"][0]["content"]["text"] for shown in turn.calls]
        assert texts == ["1|unsaved", *["1|from the disk"] * 3]


FORMS: list[tuple[str, Json, list[str]]] = [
    ("notices", {"session": {"notices": {}}}, ["history_trimmed", "usage_update", "notice"]),
    ("compaction", {"session": {"compaction": {}}}, ["history_trimmed", "usage_update", "compaction_update"]),
    (
        "null gates",
        {"session": {"notices": None}},
        ["history_trimmed", "usage_update", "agent_thought_chunk"],
    ),
    ("known", {"_meta": {"wholeturn": {"historyTrimmed": True}}}, ["history_trimmed", "usage_update"]),
    ("refused", {"_meta": {"wholeturn": {"historyTrimmed": False}}}, ["usage_update", "agent_thought_chunk"]),
]


@pytest.mark.parametrize(("name", "capabilities", "form"), FORMS, ids=[row[0] for row in FORMS])
async def test_a_trim_is_told_in_the_forms_that_this_client_takes(
    home: Home, name: str, capabilities: Json, form: list[str]
) -> None:
    """First of all in its turn; notice and compaction only behind their gates."""
    home.configure(profile=TIGHT)
    async with home.talk(capabilities) as talk:
        await talk.turn("one")
        turn = await talk.turn("two")
        assert kinds(turn.updates)[: len(form)] == form
        twin = of_kind(turn.updates, "usage_update")[0]["_meta"][TRIM_META]
        assert (twin["droppedMessages"], twin["keptTurns"]) == (2, 1)
        assert twin["reason"] == "history turn limit exceeded"


async def test_a_trim_as_an_extension_notification_when_the_client_asked_for_that(home: Home) -> None:
    home.configure(profile=TIGHT)
    async with home.talk({"_meta": {"wholeturn": {"historyTrimmed": "ext"}}}) as talk:
        await talk.turn("one")
        turn = await talk.turn("two")
        told = await talk.agent.until(lambda frame: frame.get("method") == "_wholeturn/history_trimmed")
        facts = {"droppedMessages": 2, "keptTurns": 1, "reason": "history turn limit exceeded"}
        assert told["params"] == {"sessionId": talk.session_id, **facts}
        assert not of_kind(turn.updates, "history_trimmed")


async def test_initialize_again_only_while_no_session_is_open(home: Home) -> None:
    async with home.start() as agent:
        assert await greet(agent) == await greet(agent)
        talk = await Talk.new(agent, home.work)
        with pytest.raises(Refused) as caught:
            await greet(agent)
        assert caught.value.code == -32600
        assert (await talk.turn("hi")).stop == "end_turn"


async def test_session_close_ends_the_session_and_keeps_what_is_stored(home: Home) -> None:
    home.script(says(["half an "], hang=True), echo="{turn}")
    async with home.talk() as talk:
        asked = await talk.ask("go")
        await talk.see("agent_message_chunk")
        assert await talk.agent.call("session/close", {"sessionId": talk.session_id}) == {}
        assert (await talk.end_of(asked)).stop == "cancelled"
        for method in ("session/prompt", "session/close"):
            with pytest.raises(Refused) as caught:
                await talk.agent.call(method, {"sessionId": talk.session_id, "prompt": []})
            assert (caught.value.code, caught.value.data) == (-32002, {"sessionId": talk.session_id})
        assert "half an " in text_of(await talk.load(talk.agent))
        assert (await talk.turn("more")).stop == "end_turn"
