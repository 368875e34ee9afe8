"""Cases about reasoning that a provider wants back, by their ids, through a session and over each one's wire.

Where the product does otherwise than a case wishes, the docstring says what and why.
"""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from runtime.conversation.conversation import Conversation
from runtime.conversation.load_and_fork import read_state, restore
from runtime.history.rows.estimate import estimate_history_tokens
from runtime.ports import Tool
from runtime.providers import catalog
from runtime.providers.settings import ProviderSettings
from runtime.session.session import Session
from runtime.store.memory import MemoryStore
from runtime.values.profiles import Profile
from runtime.values.rows import Row
from runtime.values.stored import SessionRecord, StoredEntry
from runtime.values.texts import INTERRUPTED_RESULT
from schemas.transcript import CallRecord, PartialStep, PromptStep, ReplyStep, Step, ToolStep
from tests.contracts.plans import events, lines
from tests.runtime.cases.harness import fixed_tool, given, prompts, turns, write_turns
from tests.runtime.history.case_data import cases
from tests.support.fakes import TIME, RecordingClient, ask, make_setup
from tests.support.fakes_llm import Canned, FakeServer, fake_server, sse, text_event

CALL = cases()["B065"]["input"]["history"][4]
THOUGHT: str = CALL["reasoning"]
NAME: str = CALL["calls"][0]["name"]
ARGUMENTS = json.dumps(CALL["calls"][0]["args"])


@asynccontextmanager
async def session(
    kind: str, server: FakeServer, store: MemoryStore, profile: Profile, tools: Sequence[Tool] = ()
) -> AsyncIterator[Session]:
    """A session of that store with a model of that kind at the server."""
    model = catalog.create(ProviderSettings("p", kind, server.base_url))
    setup = make_setup(model, profile, tools)
    record = await store.session("s")
    assert record is not None
    talk = Conversation(
        "s", Path("/project"), setup, store, RecordingClient(), state=read_state(record.state)
    )
    await restore(talk)
    try:
        with trio.fail_after(20):
            yield Session(talk)
    finally:
        await model.aclose()


async def new_store() -> MemoryStore:
    store = MemoryStore()
    await store.create_session(SessionRecord("s", "/project", TIME, TIME))
    return store


def chat_call() -> tuple[bytes, ...]:
    """The case's reply as chat completions with reasoning have it."""
    function = {"name": NAME, "arguments": ARGUMENTS}
    call = {"index": 0, "id": "j1", "type": "function", "function": function}
    thought = {"choices": [{"index": 0, "delta": {"reasoning_content": THOUGHT}}]}
    return sse(
        thought, {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}, text_event("", "tool_calls")
    )


def ollama_call() -> tuple[bytes, ...]:
    call = {"function": {"name": NAME, "arguments": json.loads(ARGUMENTS)}}
    message = {"role": "assistant", "content": "", "thinking": THOUGHT, "tool_calls": [call]}
    return lines({"message": message, "done": True, "done_reason": "stop"})


CALLING = {"openai": (chat_call, "reasoning_content"), "ollama": (ollama_call, "thinking")}
DONE = {
    "openai": sse(text_event("done", "stop")),
    "ollama": lines(
        {"message": {"role": "assistant", "content": "done"}, "done": True, "done_reason": "stop"}
    ),
}


def calling_message(server: FakeServer, number: int) -> dict[str, Any]:
    """The message with calls of a request."""
    messages: Any = server.asked[number].body["messages"]
    return next(message for message in messages if message.get("tool_calls"))


@pytest.mark.parametrize("kept", [2, 1], ids=["all turns stay", "a turn leaves"])
@pytest.mark.parametrize("kind", CALLING)
async def test_b065_the_thought_of_the_running_turn_goes_back_and_is_counted(kind, kept):
    """Under the name that it came under. From the next turn on it is left out: no API wants it then."""
    made, member = CALLING[kind]
    store = await new_store()
    await write_turns(store, turns("B065")[:1])
    (asked,) = [value["text"] for value in given("B065")[3:4]]
    tool = fixed_tool(NAME, "text")
    answers = [Canned(made()), Canned(DONE[kind])]
    async with (
        fake_server(*answers) as server,
        session(kind, server, store, Profile(max_history_messages=kept), [tool]) as talk,
    ):
        assert await ask(talk, asked) == "end_turn"
        composed = talk.conversation.keeper.composed
        assert composed is not None
        rows = composed.rows()
        await ask(talk, "more")
    assert len(tool.ran) == 1
    assert calling_message(server, 1)[member] == THOUGHT
    assert len(rows) == (1 + 2 + 3 if kept == 2 else 1 + 1 + 3)
    assert composed.message_tokens > estimate_history_tokens([plain(row) for row in rows])
    assert THOUGHT not in json.dumps(server.asked[2].body)


def plain(row: Row) -> Row:
    return Row(row.role, row.content, row.tool_calls, row.tool_call_id)


SIGNED: dict[str, object] = {"type": "thinking", "thinking": "plan", "signature": "sig-AAA"}
SAID = events(
    {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "fine"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
)


def crashed_turns() -> list[tuple[str, str, Step]]:
    """The two turns of the case as a process that died twice leaves them: (turn, end of key, step)."""
    first, called, _, second, cut = given("B066")[1:]
    calls = tuple(
        CallRecord(
            call_id=f"ours-{one['id']}", id=one["id"], name=one["name"], arguments=json.dumps(one["args"])
        )
        for one in called["calls"]
    )
    marks = [SIGNED, {"type": "call"}, {"type": "call"}]
    reply = ReplyStep(iteration=0, message_id="m1", text="", calls=calls, reasoning=json.dumps(marks))
    result = ToolStep(iteration=0, call_id="ours-l1", status="completed", text="ok")
    half = PartialStep(iteration=0, thought_id="m3", thought=cut["thinking"][0]["text"])
    return [
        ("t1", "prompt", PromptStep(message_id="m0", text=first["text"], blocks=())),
        ("t1", "iter:0", reply),
        ("t1", "iter:0:tool:ours-l1", result),
        ("t2", "prompt", PromptStep(message_id="m2", text=second["text"], blocks=())),
        ("t2", "iter:0:partial:1", half),
    ]


async def test_b066_signed_rows_stay_whole_and_nothing_unsigned_is_sent():
    """The turns are over, so no thinking is sent at all; the call without a result gets one that says so."""
    store = await new_store()
    for turn, key, step in crashed_turns():
        payload = step.model_dump_json().encode()
        await store.append("s", [StoredEntry(turn, f"turn:{turn}:{key}", getattr(step, "kind", ""), payload)])
    async with (
        fake_server(Canned(SAID)) as server,
        session("anthropic", server, store, Profile()) as talk,
    ):
        assert await ask(talk, prompts("B066")[0]) == "end_turn"
    messages: Any = server.asked[0].body["messages"]
    blocks = [block for message in messages for block in message["content"]]
    assert [block["id"] for block in blocks if block["type"] == "tool_use"] == ["l1", "l2"]
    results = {block["tool_use_id"]: block["content"] for block in blocks if block["type"] == "tool_result"}
    assert results == {"l1": "ok", "l2": INTERRUPTED_RESULT}
    assert "thinking" not in json.dumps(messages)
    assert "half a tho" not in json.dumps(messages)


def anthropic_calls() -> tuple[bytes, ...]:
    """Two calls behind a signed thought."""
    blocks: list[dict[str, object]] = [SIGNED]
    blocks += [{"type": "tool_use", "id": one, "name": NAME, "input": {}} for one in ("l1", "l2")]
    starts = [
        {"type": "content_block_start", "index": index, "content_block": block}
        for index, block in enumerate(blocks)
    ]
    stop = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}}
    return events({"type": "message_start", "message": {}}, *starts, stop, {"type": "message_stop"})


async def test_b066_a_signed_row_goes_back_as_it_was_while_its_turn_runs():
    tool = fixed_tool(NAME, "ok")
    async with (
        fake_server(Canned(anthropic_calls()), Canned(SAID)) as server,
        session("anthropic", server, await new_store(), Profile(), [tool]) as talk,
    ):
        assert await ask(talk, "x") == "end_turn"
    messages: Any = server.asked[1].body["messages"]
    said = next(message["content"] for message in messages if message["role"] == "assistant")
    assert said[0] == SIGNED
    assert [block["id"] for block in said[1:]] == ["l1", "l2"]


async def test_b066_a_stream_that_is_cut_leaves_no_thought_behind():
    """Half a thought has no signature yet; the next request is without it."""
    half = events(
        {"type": "message_start", "message": {}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "thinking_delta", "thinking": "half a tho"},
        },
    )
    async with (
        fake_server(Canned(half, ending="hang"), Canned(SAID)) as server,
        session("anthropic", server, await new_store(), Profile()) as talk,
    ):
        with trio.move_on_after(0.3):
            await ask(talk, "y")
        assert await ask(talk, "next") == "end_turn"
    assert "half a tho" not in json.dumps(server.asked[1].body)
