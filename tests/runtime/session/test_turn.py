"""A turn: what is asked, what is shown, what is recorded before what, and how it ends."""

import pytest
import trio

from runtime.transcript.turn_record import read_turns
from runtime.values.errors import ContextWindowExceeded, ProviderError
from runtime.values.events import AgentText, AgentThought, ToolCallChanged, ToolCallStarted, UsageChanged
from runtime.values.profiles import Profile
from runtime.values.rows import Row
from runtime.values.texts import LIMIT_PROMPT
from tests.support.fakes import EchoTool, ask, call, make_session, script


async def test_a_plain_turn_streams_text_and_thought_under_their_own_ids():
    session, client, _ = await make_session(script({"thought": "hm", "text": ["Hel", "lo"]}))
    assert await ask(session, "hi") == "end_turn"
    thoughts = [e for e in client.events if isinstance(e, AgentThought)]
    texts = [e for e in client.events if isinstance(e, AgentText)]
    assert client.text() == "Hello"
    assert len({e.message_id for e in texts}) == 1
    assert {e.message_id for e in thoughts}.isdisjoint({e.message_id for e in texts})


async def test_the_request_carries_system_prompt_and_tools():
    provider = script({"text": "ok"})
    session, _, _ = await make_session(provider, tools=[EchoTool()])
    await ask(session, "hi")
    request = provider.requests[0]
    assert [row.role for row in request.rows()] == ["system", "user"]
    assert [spec.name for spec in request.tools] == ["echo"]
    assert request.model == "test-model"


async def test_tool_calls_run_and_their_results_go_back_in_order():
    provider = script({"text": "see", "calls": [call("a", id="x"), call("b", id="y")]}, {"text": "done"})
    session, client, _ = await make_session(provider, tools=[EchoTool()])
    assert await ask(session, "go") == "end_turn"
    rows = provider.requests[1].rows()
    assert [(r.role, r.content, r.tool_call_id) for r in rows[-2:]] == [
        ("tool", "a", "x"),
        ("tool", "b", "y"),
    ]
    started = [e for e in client.events if isinstance(e, ToolCallStarted)]
    assert [e.status for e in started] == ["pending", "pending"]
    assert all(client.statuses(e.call_id) == ["in_progress", "completed"] for e in started)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (call("fail"), "that did not work"),
        (call("break"), "internal reason"),
        ({"name": "nope", "arguments": {}}, "no tool named 'nope'"),
        ({"name": "echo", "arguments": "{broken"}, "could not be read"),
        ({"name": "echo", "arguments": "[1]"}, "not a JSON object"),
    ],
)
async def test_a_failed_tool_is_not_a_failed_turn(asked, reason):
    provider = script({"calls": [asked]}, {"text": "I see."})
    session, client, _ = await make_session(provider, tools=[EchoTool()])
    assert await ask(session, "go") == "end_turn"
    result = provider.requests[1].rows()[-1]
    assert reason in result.content
    assert "secret" not in result.content
    assert [e.status for e in client.events if isinstance(e, ToolCallChanged)][-1] == "failed"


async def test_the_limit_of_tool_rounds_ends_with_an_answer_without_tools():
    provider = script({"calls": [call("a")], "repeat": 2}, {"text": "So far."})
    session, client, _ = await make_session(
        provider, profile=Profile(max_tool_iterations=2), tools=[EchoTool()]
    )
    assert await ask(session, "go") == "max_turn_requests"
    last = provider.requests[-1]
    assert last.tools == ()
    assert last.rows()[-1] == Row("user", LIMIT_PROMPT, origin="runtime")
    assert client.text().endswith("[Stopped at this turn's limit of 2 tool rounds.]")


@pytest.mark.parametrize(("stop", "reason"), [("length", "max_tokens"), ("refusal", "refusal")])
async def test_the_providers_stop_becomes_the_turns(stop, reason):
    session, _, _ = await make_session(script({"text": "x", "stop": stop}))
    assert await ask(session, "hi") == reason


async def test_every_step_is_recorded_before_its_effect_is_used():
    provider = script({"calls": [call("a")]}, {"text": "done"})
    session, _, store = await make_session(provider, tools=[EchoTool()])
    await ask(session, "go")
    keys = [entry.key.split(":", 2)[2] for entry in await store.entries("s") if entry.kind != "setup"]
    assert keys[0] == "prompt"
    assert keys[1] == "iter:0"
    assert keys[2].startswith("iter:0:guardrail:call_")
    assert keys[3].startswith("iter:0:tool:call_")
    assert keys[4:] == ["iter:1", "end"]


async def test_usage_is_told_after_every_call():
    provider = script(
        {"calls": [call("a")], "usage": {"input": 300, "output": 5}},
        {"text": "x", "usage": {"input": 310, "output": 7}},
    )
    session, client, _ = await make_session(provider, tools=[EchoTool()])
    await ask(session, "go")
    told = [(e.used, e.size, e.size_is_budget) for e in client.events if isinstance(e, UsageChanged)]
    assert told == [(305, 32000, False), (317, 32000, False)]


async def test_a_provider_failure_is_the_last_word_and_the_next_prompt_works():
    provider = script({"text": "half", "drop": True}, {"text": "whole"})
    session, client, _ = await make_session(provider)
    with pytest.raises(ProviderError) as raised:
        await ask(session, "one")
    assert client.text() == f"half{raised.value.message}"
    assert await ask(session, "two") == "end_turn"
    rows = provider.requests[1].rows()
    assert [r.role for r in rows] == ["system", "user", "assistant", "user"]
    assert rows[2].content == "half\n\n[this turn ended with an error before the answer was complete]"


async def test_a_call_that_was_cut_off_never_runs():
    provider = script({"text": "half", "calls": [call("a")], "drop": True}, {"text": "ok"})
    tool = EchoTool()
    session, client, _ = await make_session(provider, tools=[tool])
    with pytest.raises(ProviderError):
        await ask(session, "one")
    assert tool.ran == []
    announced = [e.call_id for e in client.events if isinstance(e, ToolCallStarted)]
    assert all(client.statuses(call_id)[-1] == "failed" for call_id in announced)
    assert await ask(session, "two") == "end_turn"


async def test_an_overflow_shrinks_the_request_and_the_turn_goes_on():
    big = "x" * 4000
    provider = script({"text": big, "repeat": 5}, {"text": "short"}, limit_tokens=3000)
    session, client, _ = await make_session(provider, profile=Profile(max_context_tokens=0), window=None)
    for number in range(5):
        assert await ask(session, f"prompt {number}") == "end_turn"
    trims = client.trims()
    assert [trim.reason for trim in trims] == ["context window overflow recovery"] * len(trims)
    assert trims
    assert provider.requests[-1].rows()[1].content.startswith("[earlier turns omitted")


async def test_a_prompt_too_large_for_the_window_is_refused_and_not_kept():
    provider = script({"text": "ok", "repeat": True})
    session, client, _ = await make_session(provider, window=2000)
    with pytest.raises(ContextWindowExceeded) as raised:
        await ask(session, "x" * 40000)
    assert raised.value.model_context_window == 2000
    assert str(raised.value.estimated_tokens) in client.text()
    assert await ask(session, "small") == "end_turn"
    assert [row.content for row in provider.requests[0].rows()[1:]] == ["small"]


async def test_trims_by_count_are_recorded_told_and_seen_by_the_model():
    provider = script({"text": "ok", "repeat": True})
    session, client, store = await make_session(provider, profile=Profile(max_history_messages=2))
    for number in range(4):
        await ask(session, f"p{number}")
    trims = client.trims()
    assert [(t.dropped_messages, t.dropped_turns, t.kept_turns) for t in trims] == [(2, 1, 2), (2, 1, 2)]
    assert {t.reason for t in trims} == {"history turn limit exceeded"}
    contents = [row.content for row in provider.requests[-1].rows()[1:]]
    assert contents == ["[earlier turns omitted to fit the context window]", "p2", "ok", "p3"]
    turns = [turn async for turn in read_turns(store, "s")]
    assert [turn.prompt.text for turn in turns if turn.prompt] == ["p0", "p1", "p2", "p3"]


async def test_a_local_answer_is_shown_and_never_reaches_the_model():
    provider = script({"text": "ok"})
    session, client, _ = await make_session(provider)
    assert await ask(session, "/local") == "end_turn"
    assert client.text() == "a local answer"
    await ask(session, "hi")
    assert [row.content for row in provider.requests[0].rows()[1:]] == ["hi"]


async def test_streamed_text_is_saved_while_it_streams(autojump_clock: trio.testing.MockClock):
    provider = script({"text": ["one ", "two ", "three"], "chunk_delay": 0.3, "hang": True})
    session, _, store = await make_session(provider)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, session, "go")
        await trio.sleep(2)
        kinds = [entry.kind for entry in await store.entries("s") if entry.kind != "setup"]
        assert kinds[:2] == ["prompt", "partial"]
        nursery.cancel_scope.cancel()


async def test_a_provider_that_counted_wrongly_does_not_close_the_session():
    lie = {"text": "ok", "usage": {"input": 900_000, "output": 1}}
    provider = script(lie, {"text": "still here"})
    session, client, _ = await make_session(provider, window=16_000)
    await ask(session, "one")
    assert await ask(session, "two") == "end_turn"
    assert client.text() == "okstill here"
