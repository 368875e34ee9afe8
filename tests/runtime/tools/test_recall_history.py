"""recall_history: what was said and done in this conversation is found again, in capped parts."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from runtime.ports import ToolContext
from runtime.store.memory import MemoryStore
from runtime.tools.talk.recall_history import PART, RecallHistory
from runtime.transcript.recall import SessionRecall
from runtime.values.errors import ToolError
from runtime.values.profiles import Profile
from runtime.values.stored import SessionRecord
from tests.support.fakes import TIME, EchoTool, RecordingClient, ask, call, make_session, script

TOOL = RecallHistory()


async def spoken() -> ToolContext:
    """Three turns, of which the model sees the newest; the first used a tool with a long result."""
    long = "needle " + "hay " * 5000 + "thimble"
    session, _, _ = await make_session(
        script(
            {"calls": [call(long, id="c1")], "text": "I look"}, {"text": "found the quagga"}, {"text": "b"}
        ),
        tools=[EchoTool()],
        profile=Profile(max_history_messages=1, max_tool_result_chars=100),
    )
    for text in ("where is the zebra?", "and the okapi?"):
        await ask(session, text)
    return session.conversation.tool_context


async def run(context: ToolContext, **arguments: object) -> str:
    given: Mapping[str, object] = arguments
    assert (await TOOL.request(given, context)).action == "read"
    return (await TOOL.run(given, context)).text


async def test_a_dropped_turn_is_found_by_its_words_with_its_number():
    context = await spoken()
    assert "turn 1, prompt: where is the zebra?" in await run(context, query="zebra")
    assert "turn 1, answer: " in await run(context, query="quagga")
    assert "turn 2, prompt: " in await run(context, query="okapi")


async def test_a_tool_result_is_found_whole_also_what_was_cut_from_it():
    found = await run(await spoken(), query="thimble")
    assert "turn 1, tool result" in found
    assert len(found) < 1000


async def test_nothing_found_is_said():
    assert "nothing in this conversation" in await run(await spoken(), query="aardvark")


async def test_a_turn_is_read_in_parts_to_its_end():
    context = await spoken()
    text, offset = "", 0
    while True:
        part = await run(context, turn=1, offset=offset)
        body, _, more = part.partition("\n[characters ")
        text += body
        if not more:
            break
        assert len(body) == PART
        offset = int(more.split("offset=")[1].rstrip("]"))
    assert text.startswith("[user]\nwhere is the zebra?\n[assistant]\nI look\n[call echo ")
    assert text.endswith("thimble\n[assistant]\nfound the quagga")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "give either"),
        ({"query": "x", "turn": 1}, "give either"),
        ({"turn": 0}, "turn must be"),
        ({"turn": 9}, "there is no turn 9"),
        ({"turn": 2, "offset": 99_999}, "past its end"),
        ({"words": "x"}, "unknown argument"),
    ],
)
async def test_bad_arguments_are_named(arguments: dict[str, object], said: str):
    with pytest.raises(ToolError, match=said):
        await run(await spoken(), **arguments)


async def test_a_conversation_that_is_not_stored():
    context = ToolContext("s", Path("/project"), (Path("/project"),), RecordingClient())
    with pytest.raises(ToolError, match="not stored"):
        await run(context, query="x")


async def test_new_turns_are_counted_on():
    store = MemoryStore()
    await store.create_session(SessionRecord("s", "/project", TIME, TIME))
    recall = SessionRecall(store, "s")
    assert await recall.turn(1) is None
    session, _, other = await make_session(script({"text": "a", "repeat": True}))
    recall = SessionRecall(other, "s")
    for number in (1, 2):
        await ask(session, f"p{number}")
        assert f"p{number}" in (await recall.turn(number) or "")
    assert await recall.turn(3) is None


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        ({"query": "zebra"}, 'Recall "zebra"'),
        ({"turn": 3}, "Recall turn 3"),
        ({"turn": "x"}, "Recall earlier turns"),
        ({}, "Recall earlier turns"),
    ],
)
async def test_titles(arguments: dict[str, object], title: str):
    context = ToolContext("s", Path("/project"), (Path("/project"),), RecordingClient())
    assert TOOL.view(arguments, context).title == title
