"""A turn as ACP v2 tells it, with the real process: every frame valid by the draft's schema, in its order."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import pytest
import trio

from tests.process.homes import Home, call, calls, says
from tests.support.wire import Handler, Refused
from tests.support.wire_order import Json
from tests.support.wire_talk import text_block
from tests.support.wire_talk_v2 import Talk, greet

READ = call("read_file", path="a.txt")
EDIT = call("edit_file", path="a.txt", edits=[{"old": "two", "new": "2"}])
WRITE = call("write_file", path="made.txt", content="new\n")
RUN = call("run_command", command="touch ran.txt")
SLEEP = call("run_command", command="echo started; sleep 60")


@asynccontextmanager
async def talking(
    home: Home,
    capabilities: Json | None = None,
    *,
    handlers: Mapping[str, Handler] | None = None,
    acp: str = "v2 = true",
    mode: str = "",
) -> AsyncIterator[Talk]:
    """A session on a connection that speaks v2."""
    home.configure(acp=acp)
    (home.work / "a.txt").write_text("one\ntwo\nthree\n")
    arguments = ("--mode", mode) if mode else ()
    async with home.start(*arguments, handlers=handlers, edition="schema-v2") as agent:
        assert (await greet(agent, capabilities))["protocolVersion"] == 2
        yield await Talk.new(agent, home.work)


def asks(answer: Callable[[Json], Awaitable[object]]) -> dict[str, Handler]:
    return {"session/request_permission": answer}


def chooses(kind: str) -> tuple[dict[str, Handler], list[Json]]:
    """A person who picks the option of this kind, and what they were asked."""
    asked: list[Json] = []

    async def answer(params: Json) -> object:
        asked.append(params)
        await trio.lowlevel.checkpoint()
        chosen = next(option for option in params["options"] if option["kind"] == kind)
        return {"outcome": {"outcome": "selected", "optionId": chosen["optionId"]}}

    return asks(answer), asked


# ---------------------------------------------------------------- a turn


async def test_the_answer_comes_first_and_the_turn_as_updates(home: Home) -> None:
    home.script(calls(READ), says(["Hel", "lo."]))
    async with talking(home) as talk:
        turn = await talk.turn([text_block("hi"), {"type": "resource_link", "uri": "file:///b", "name": "b"}])
        frames = talk.agent.frames
        taken = next(at for at, frame in enumerate(frames) if "messageId" in frame.get("result", {}))
        shown = next(at for at, frame in enumerate(frames) if talk.says("user_message")(frame))
        assert taken < shown
    assert (turn.stop, turn.text, turn.states) == ("end_turn", "Hello.", ["running", "idle"])
    (first,), (second,) = turn.of("user_message"), turn.of("user_message_chunk")
    assert {first["messageId"], second["messageId"]} == {turn.message_id}
    assert (first["content"], second["content"]["name"]) == ([text_block("hi")], "b")
    assert {update["messageId"] for update in turn.of("agent_message_chunk")} != {turn.message_id}
    (read,) = turn.calls
    assert (read["kind"], read["name"], read["status"]) == ("read", "read_file", "completed")
    assert read["content"] == [{"type": "content", "content": text_block("1|one\n2|two\n3|three\n")}]


async def test_a_plan_is_told_with_an_id(home: Home) -> None:
    entries = [{"content": "look", "status": "completed"}, {"content": "mend", "status": "in_progress"}]
    home.script(calls(call("update_plan", entries=entries)), says("ok"))
    async with talking(home) as talk:
        (update,) = (await talk.turn("plan it")).of("plan_update")
    assert (update["plan"]["type"], update["plan"]["planId"]) == ("items", "plan")
    assert [entry["status"] for entry in update["plan"]["entries"]] == ["completed", "in_progress"]


async def test_a_command_is_answered_like_a_turn(home: Home) -> None:
    async with talking(home) as talk:
        turn = await talk.turn("/help")
    assert (turn.stop, turn.states) == ("end_turn", ["running", "idle"])
    assert "/model" in turn.text


async def test_commands_and_options_have_their_new_shapes(home: Home) -> None:
    async with talking(home) as talk:
        commands = (await talk.see("available_commands_update"))["availableCommands"]
        assert {command["type"] for command in commands} == {"command"}
        hints = [command["input"] for command in commands if "input" in command]
        assert {hint["type"] for hint in hints} == {"text"}
        params = {"sessionId": talk.session_id, "configId": "mode", "type": "id", "value": "plan"}
        result = await talk.agent.call("session/set_config_option", params)
        assert {one["configId"]: one["currentValue"] for one in result["configOptions"]}["mode"] == "plan"
        told = await talk.see("config_option_update")
        assert told["configOptions"] == result["configOptions"]


async def test_trouble_with_the_model_ends_the_turn_as_an_error(home: Home) -> None:
    home.script({"error": {"status": 401, "message": "bad key"}}, says("again"))
    async with talking(home) as talk:
        turn = await talk.turn("hi")
        assert (turn.stop, turn.end["error"]["code"]) == ("error", -32000)
        assert turn.end["error"]["message"] in turn.text
        assert (await talk.turn("and now?")).text == "again"


async def test_a_prompt_waits_until_the_one_before_is_done(home: Home) -> None:
    home.script(says("first", delay=0.3), says("second"))
    async with talking(home) as talk:
        one, two = await talk.ask("one"), await talk.ask("two")
        first = await talk.end_of(one)
        assert first.text == "first"
        ended = next(
            at for at, frame in enumerate(talk.agent.frames) if talk.says("state_update", state="idle")(frame)
        )
        second = await talk.end_of(two, ended + 1)
        frames = talk.agent.frames
        taken = {frame["id"]: at for at, frame in enumerate(frames) if "messageId" in frame.get("result", {})}
    assert (second.text, second.states) == ("second", ["running", "idle"])
    assert taken[one] < ended < taken[two]


# ---------------------------------------------------------------- trims


@pytest.mark.parametrize("setting", ["always", "off"])
async def test_a_trim_is_told_by_names_that_are_ours_to_give(home: Home, setting: str) -> None:
    home.script(echo="{turn}: {last}")
    home.configure(profile="max_history_messages = 2\nhistory_unit = 'turns'\ntrim_slack_ratio = 0")
    async with talking(home, acp=f'v2 = true\nhistory_trimmed = "{setting}"') as talk:
        turns = [await talk.turn(f"word {number}") for number in range(4)]
    trimmed = next(turn for turn in turns if turn.of("compaction_update"))
    kinds = [update["sessionUpdate"] for update in trimmed.updates]
    at = kinds.index("compaction_update")
    compaction, twin = trimmed.updates[at], trimmed.updates[at - 1]
    facts = twin["_meta"]["wholeturn/history_trimmed"]
    assert (twin["sessionUpdate"], compaction["status"]) == ("usage_update", "completed")
    assert compaction["compactionId"] == facts["trimId"]
    assert compaction["_meta"]["wholeturn/history_trimmed"] == facts
    assert facts["droppedMessages"] >= 1
    own = trimmed.of("_wholeturn_history_trimmed")
    assert [{name: one[name] for name in ("droppedMessages", "keptTurns", "reason")} for one in own] == (
        [{name: facts[name] for name in ("droppedMessages", "keptTurns", "reason")}]
        if setting == "always"
        else []
    )


# ---------------------------------------------------------------- permission


async def test_an_edit_is_asked_for_with_a_patch_and_shown_as_one(home: Home) -> None:
    home.script(calls(EDIT), says("done"))
    handlers, asked = chooses("allow_once")
    async with talking(home, handlers=handlers) as talk:
        turn = await talk.turn("go")
    assert (home.work / "a.txt").read_text() == "one\n2\nthree\n"
    path = str(home.work / "a.txt")
    (question,) = asked
    assert question["title"]
    assert question["subject"]["type"] == "tool_call"
    shown = [part for part in question["subject"]["toolCall"]["content"] if part["type"] == "diff"]
    assert shown == [part for part in turn.calls[0]["content"] if part["type"] == "diff"]
    assert shown[0]["changes"] == [{"operation": "modify", "path": path, "fileType": "text"}]
    assert f"--- {path}\n+++ {path}\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n" in shown[0]["patch"]["text"]
    assert turn.states == ["running", "requires_action", "running", "idle"]


async def test_what_is_not_allowed_fails_and_the_turn_goes_on(home: Home) -> None:
    home.script(calls(WRITE), says("done"))
    async with talking(home, handlers=chooses("reject_once")[0]) as talk:
        turn = await talk.turn("go")
    assert (turn.stop, turn.text, turn.calls[0]["status"]) == ("end_turn", "done", "failed")
    assert not (home.work / "made.txt").exists()


async def refuses(params: Json) -> object:
    raise Refused({"code": -32601, "message": "Method not found"})


async def puts_away(params: Json) -> object:
    return {"outcome": {"outcome": "cancelled"}}


async def says_it_in_a_new_way(params: Json) -> object:
    return {"outcome": {"outcome": "_allowed", "optionId": params["options"][0]["optionId"]}}


@pytest.mark.parametrize("answer", [refuses, puts_away, says_it_in_a_new_way])
async def test_what_chooses_no_option_allows_nothing_and_ends_nothing(home: Home, answer: Handler) -> None:
    home.script(calls(RUN), says("done"))
    async with talking(home, handlers=asks(answer)) as talk:
        turn = await talk.turn("go")
    assert (turn.stop, turn.text, turn.calls[0]["status"]) == ("end_turn", "done", "failed")
    assert not (home.work / "ran.txt").exists()


async def test_a_turn_is_cancelled_while_nobody_answers(home: Home) -> None:
    home.script(calls(RUN), says("next"))
    came = trio.Event()

    async def never(params: Json) -> object:
        came.set()
        await trio.sleep_forever()

    async with talking(home, handlers=asks(never)) as talk:
        since = len(talk.agent.frames)
        asked = await talk.ask("go")
        await came.wait()
        await talk.see("state_update", state="requires_action")
        with trio.fail_after(5):
            await talk.cancel()
            turn = await talk.end_of(asked, since)
        assert (turn.stop, turn.calls[0]["status"]) == ("cancelled", "cancelled")
        assert turn.states == ["running", "requires_action", "idle"]
        assert (await talk.turn("and now?")).text == "next"
    assert not (home.work / "ran.txt").exists()


async def test_a_question_waits_for_a_person_though_its_call_runs(home: Home) -> None:
    async def answer(params: Json) -> object:
        await trio.lowlevel.checkpoint()
        return {"action": "accept", "content": {"answer": "red"}}

    wanted = call("ask_user", question="Which one?", choices=[{"answer": "red"}, {"answer": "blue"}])
    home.script(calls(wanted), says("ok"))
    handlers = {"elicitation/create": answer}
    async with talking(home, {"elicitation": {"form": {}}}, handlers=handlers) as talk:
        turn = await talk.turn("go")
    assert turn.states == ["running", "requires_action", "running", "idle"]
    assert turn.calls[0]["content"][0]["content"]["text"] == "red"


# ---------------------------------------------------------------- cancel


async def test_cancel_in_a_stream_keeps_what_came(home: Home) -> None:
    home.script(says(["half", " more"], chunk_delay=30), says("next"))
    async with talking(home) as talk:
        since = len(talk.agent.frames)
        asked = await talk.ask("go")
        await talk.see("agent_message_chunk", since=since)
        await talk.cancel()
        await talk.cancel()
        turn = await talk.end_of(asked, since)
        assert (turn.stop, turn.text) == ("cancelled", "half")
        await talk.cancel()
        assert (await talk.turn("and now?")).text == "next"


async def test_cancel_in_a_tool_ends_it_as_cancelled_then_and_later(home: Home) -> None:
    home.script(calls(SLEEP), says("next"))
    async with talking(home, mode="yolo") as talk:
        since = len(talk.agent.frames)
        asked = await talk.ask("go")
        await talk.see("tool_call_update", since=since, status="in_progress")
        await talk.cancel()
        turn = await talk.end_of(asked, since)
        assert (turn.stop, [one["status"] for one in turn.calls]) == ("cancelled", ["cancelled"])
    async with home.start(edition="schema-v2") as agent:
        await greet(agent)
        replay = await talk.resume(agent, replayFrom={"type": "start"})
    (shown,) = [update for update in replay if update["sessionUpdate"] == "tool_call_update"]
    assert shown["status"] == "cancelled"


@pytest.mark.parametrize("how", ["session/cancel", "$/cancel_request", "session/close"])
async def test_a_prompt_that_was_not_taken_is_given_up(home: Home, how: str) -> None:
    home.script(says("first", hang=True), says("next"))
    async with talking(home) as talk:
        since = len(talk.agent.frames)
        one = await talk.ask("one")
        await talk.agent.result(one)
        two = await talk.ask("two")
        if how == "$/cancel_request":
            await talk.agent.notify(how, {"requestId": one})  # it has its answer: nothing is left to give up
            await talk.agent.notify(how, {"requestId": two})
        elif how == "session/cancel":
            await talk.cancel()
        else:
            await talk.agent.call(how, {"sessionId": talk.session_id})
        with pytest.raises(Refused) as refused:
            await talk.agent.result(two)
        assert refused.value.code == -32800
        if how == "$/cancel_request":
            await talk.cancel()
        assert (await talk.end_of(one, since)).stop == "cancelled"


async def test_a_prompt_that_never_became_part_of_the_session_is_an_error(home: Home) -> None:
    """Another process has the session, which it keeps from its first prompt on."""
    async with talking(home) as talk, home.start(edition="schema-v2") as other:
        await talk.turn("hi")
        await greet(other)
        late = Talk(other, talk.session_id, home.work)
        await late.resume(other)
        since = len(other.frames)
        with pytest.raises(Refused) as refused:
            await other.result(await late.ask("me too"))
        assert refused.value.code == -32600
        idle = await late.see("state_update", since=since, state="idle")
        assert (idle["stopReason"], idle["error"]["code"]) == ("error", -32600)


async def test_the_end_of_input_ends_a_turn_that_was_taken(home: Home) -> None:
    home.script(says("first", hang=True))
    async with talking(home) as talk:
        await talk.agent.result(await talk.ask("one"))
        assert await talk.agent.close(seconds=5) == 0
    assert talk.says("state_update", state="idle", stopReason="cancelled")(talk.agent.frames[-1])
