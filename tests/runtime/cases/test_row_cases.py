"""Cases about rows that providers refuse and about sizes, by their ids, through a session.

Where the product does otherwise than a case wishes, the docstring says what and why.
"""

import json

import pytest

from runtime.providers.openai_chat.request import BodyShape, BodyWriter
from runtime.transcript.turn_record import read_turns
from runtime.values.events import ToolCallStarted
from runtime.values.model import ModelRequest
from runtime.values.profiles import Profile
from runtime.values.texts import NO_ANSWER
from tests.runtime.cases.harness import fixed_tool, play, prompts, tokens
from tests.runtime.history.case_data import cases, expand


def messages(request: ModelRequest):
    """The messages as they go to a server."""
    return json.loads(BodyWriter(BodyShape()).body(request))["messages"]


async def test_b059_an_empty_reply_leaves_no_row_and_is_told():
    case = await play("B059")
    first, second = prompts("B059")
    assert await case.ask(first) == "end_turn"
    assert case.client.text() == NO_ANSWER
    assert await case.ask(second) == "end_turn"
    assert case.client.text() == NO_ANSWER + "Here."
    assert [message["content"] for message in messages(case.requests[-1])][1:] == [f"{first}\n\n{second}"]


async def test_b064_a_request_never_ends_in_an_answer():
    calls = [{"name": "read_file", "id": "i1"}]
    case = await play("B064", {"calls": calls}, {"text": "e"}, tools=[fixed_tool("read_file", "ok")])
    await case.ask("go on")
    assert [messages(request)[-1]["role"] for request in case.requests] == ["user", "tool"]
    assert [
        message.get("tool_call_id") for message in messages(case.requests[-1]) if "tool_call_id" in message
    ] == [
        "i1",
        "i1_2",
    ]


async def test_b067_ids_that_repeat_or_are_empty_become_unique():
    tool = fixed_tool("shell", "out")
    case = await play("B067", tools=[tool])
    for text in prompts("B067"):
        assert await case.ask(text) == "end_turn"
    assert [arguments["cmd"] for arguments in tool.ran] == ["date", "hostname", "id", "pwd"]
    shown = [event.call_id for event in case.client.events if isinstance(event, ToolCallStarted)]
    assert len(set(shown)) == 4
    last = messages(case.requests[5])
    asked = [call["id"] for message in last for call in message.get("tool_calls", ())]
    answered = [message["tool_call_id"] for message in last if message["role"] == "tool"]
    assert asked == answered
    assert asked[:2] == ["call_0", "call_0_2"]
    assert len(set(asked)) == 4
    assert all(asked)


async def test_b067_two_calls_of_one_reply_under_one_id_both_get_their_result():
    call = {"name": "shell", "id": "call_0"}
    calls = [call | {"arguments": {"cmd": one}} for one in ("id", "pwd")]
    tool = fixed_tool("shell", "out")
    case = await play("B067", {"calls": calls}, {"text": "done"}, tools=[tool])
    assert await case.ask("both") == "end_turn"
    assert len(tool.ran) == 2
    assert [row.content for row in case.rows if row.role == "tool"] == ["out", "out"]


@pytest.mark.parametrize("case_id", ["B059", "B067"])
async def test_no_message_is_empty_on_the_wire(case_id):
    case = await play(case_id, tools=[fixed_tool("shell", "out")], profile=Profile(max_history_messages=1))
    for text in prompts(case_id):
        await case.ask(text)
    sent = [message for request in case.requests for message in messages(request)]
    assert all(message["content"] or message.get("tool_calls") for message in sent)


async def test_b071_what_a_provider_counts_corrects_the_estimate():
    text = expand(cases()["B071"]["input"]["samples"][1][0])
    case = await play("B059", {"text": "ok", "usage": {"input": 900, "output": 1}}, {"text": "ok"})
    await case.ask(text)
    await case.ask("more")
    counted = tokens(case.requests[-1])
    composed = case.session.conversation.keeper.composed
    assert composed is not None
    assert composed.source == "calibrated"
    assert composed.estimated_tokens == round(counted * 900 / tokens(case.requests[0]))


async def test_b075_every_result_passes_one_cap_and_stays_whole_in_the_store():
    log = "".join(f"line {number:07}\n" for number in range(12_000_000 // 13))
    # What the provider counts is about what is sent, so the tools take their part of it.
    tool = fixed_tool("mcp__ci__log", log, "x" * 3400)
    case = await play("B075", window=131_000, tools=[tool])
    assert await case.ask(prompts("B075")[0]) == "end_turn"
    assert max(map(tokens, case.requests)) <= 131_000
    (result,) = [row.content for row in case.rows if row.role == "tool"]
    cut = len(log) - 50_000
    assert f"\n\n[... {cut} characters truncated ...]\n\n" in result
    assert result.startswith("line 0000000\n")
    assert result.endswith(log[-13:])
    (turn,) = [turn async for turn in read_turns(case.store, "s")]
    assert [step.text for step in turn.iterations[0].tools.values()] == [log]
    before, after = (event.used for event in case.usage())
    assert after > before + 10_000
