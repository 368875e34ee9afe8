"""Turns whose tools a person is asked about: what runs, in which order, and how the turn ends."""

import trio

from runtime.permission.ask_person import NO_ANSWER, REJECTED, TOO_MANY
from runtime.permission.modes import Permission
from runtime.values.events import ToolCallChanged
from runtime.values.profiles import Profile
from tests.support.fakes import EchoTool, ask, call, make_session, script


async def asked(*texts: str, answer: str = "allow_once", profile: Profile | None = None, rounds: int = 1):
    replies = [{"calls": [call(text) for text in texts]}] * rounds
    tool, provider = EchoTool(), script(*replies, {"text": "done"})
    session, client, store = await make_session(provider, tools=[tool], profile=profile)
    client.answer = answer
    return session, client, store, tool, provider


async def kinds(store) -> list[str]:
    return [entry.kind for entry in await store.entries("s") if entry.kind != "setup"]


async def test_a_call_runs_once_it_is_allowed_and_the_answer_is_recorded_first():
    session, client, store, tool, _ = await asked("one")
    assert await ask(session, "go") == "end_turn"
    assert tool.ran == ["one"]
    assert len(client.asked) == 1
    assert await kinds(store) == ["prompt", "reply", "guardrail", "tool", "reply", "end"]


async def test_a_rejected_call_does_not_run_and_the_model_hears_why():
    for answer, why in (("reject_once", REJECTED), ("none", NO_ANSWER)):
        session, client, _, tool, provider = await asked("one", answer=answer)
        assert await ask(session, "go") == "end_turn"
        assert tool.ran == []
        assert provider.requests[1].rows()[-1].content == why
        changes = [event for event in client.events if isinstance(event, ToolCallChanged)]
        assert [event.status for event in changes] == ["failed"]


async def test_people_are_asked_one_by_one_in_the_models_order():
    texts = [f"t{number}" for number in range(12)]
    session, client, _, tool, _ = await asked(*texts)
    await ask(session, "go")
    assert [seen.raw_input["text"] for seen, _ in client.asked] == texts
    assert tool.ran == texts


async def test_an_answer_that_stops_the_turn_stops_it():
    session, client, store, tool, provider = await asked("one", "two", answer="cancelled")
    assert await ask(session, "go") == "cancelled"
    assert tool.ran == []
    assert len(provider.requests) == 1
    assert (await kinds(store))[-1] == "end"
    finals = [event.status for event in client.events if isinstance(event, ToolCallChanged)]
    assert finals == ["failed", "failed"]
    client.answer = "allow_once"
    assert await ask(session, "again") == "end_turn"
    assert all(row.tool_call_id for row in provider.requests[1].rows() if row.role == "tool")


async def test_a_cancel_ends_the_wait_for_an_answer(autojump_clock):
    session, client, _, tool, _ = await asked("one", answer="never")
    async with trio.open_nursery() as nursery:

        async def cancel() -> None:
            await trio.sleep(5)
            session.cancel()

        nursery.start_soon(cancel)
        assert await ask(session, "go") == "cancelled"
    assert trio.current_time() == 5
    assert tool.ran == []
    finals = [event.status for event in client.events if isinstance(event, ToolCallChanged)]
    assert finals == ["failed"]


async def test_a_turn_that_asks_too_often_ends():
    session, client, _, tool, _ = await asked("x", profile=Profile(max_approvals=2), rounds=6)
    assert await ask(session, "go") == "max_turn_requests"
    assert tool.ran == ["x", "x"]
    assert len(client.asked) == 2
    assert client.text().endswith(TOO_MANY.format(limit=2))
    assert await ask(session, "more") == "max_turn_requests"
    assert tool.ran == ["x"] * 4


async def test_nobody_is_asked_where_the_settings_allow_it():
    session, client, store, tool, _ = await asked("one")
    session.conversation.approver.put("yolo")
    assert session.conversation.setup.permission == Permission()
    await ask(session, "go")
    assert (tool.ran, client.asked) == (["one"], [])
    assert "guardrail" not in await kinds(store)
