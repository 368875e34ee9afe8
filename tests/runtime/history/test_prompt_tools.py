"""Tools for models that write their calls into text: what is shown, what is asked, what comes back."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.conversation.load_and_fork import replay
from runtime.history.rows.calls_in_text import (
    TagFilter,
    instructions,
    results_text,
    unreadable_calls,
    visible_text,
)
from runtime.values.events import ToolCallStarted
from runtime.values.rows import ToolSpec
from tests.support.fakes import EchoTool, RecordingClient, ask, make_session, script

CALL = '<tool_call>{"name": "echo", "arguments": {"text": "a"}}</tool_call>'


async def test_a_written_call_runs_and_its_result_comes_back_in_a_user_row():
    provider = script({"text": f"Let me see.\n{CALL}"}, {"text": "It says a."})
    session, client, _ = await make_session(provider, tools=[EchoTool()], prompt_tools=True)
    assert await ask(session, "go") == "end_turn"
    first, second = provider.requests
    assert first.tools == ()
    assert "echo: Say it back." in first.rows()[0].content
    assert [(row.role, row.content) for row in second.rows()[1:]] == [
        ("user", "go"),
        ("assistant", f"Let me see.\n{CALL}"),
        ("user", '[Tool results]\n<tool_result name="echo">\na\n</tool_result>'),
    ]
    assert client.text() == "Let me see.\nIt says a."
    assert [e.title for e in client.events if isinstance(e, ToolCallStarted)] == ["Echo a"]


async def test_a_call_that_cannot_be_read_is_sent_back_as_such():
    provider = script({"text": "<tool_call>{oops</tool_call>"}, {"text": "Sorry."})
    session, client, _ = await make_session(provider, tools=[EchoTool()], prompt_tools=True)
    assert await ask(session, "go") == "end_turn"
    assert provider.requests[1].rows()[-1].content.startswith("[Tool call parse error]")
    assert client.text() == "Sorry."
    assert session.conversation.keeper.history.turn_count == 1


async def test_replay_hides_the_calls_text_and_shows_the_calls():
    provider = script({"text": f"See. {CALL}"}, {"text": "Done."})
    session, live, _ = await make_session(provider, tools=[EchoTool()], prompt_tools=True)
    await ask(session, "go")
    shown = session.conversation.client = RecordingClient()
    await replay(session.conversation)
    assert shown.text() == live.text() == "See. Done."
    assert [e.status for e in shown.events if isinstance(e, ToolCallStarted)] == ["completed"]


async def test_old_prompt_mode_turns_collapse_and_trim_like_native_ones():
    replies = [reply for n in range(6) for reply in ({"text": CALL}, {"text": f"done {n}"})]
    provider = script(*replies)
    session, _, _ = await make_session(provider, tools=[EchoTool()], prompt_tools=True)
    for number in range(6):
        await ask(session, f"p{number}")
    contents = [row.content for row in provider.requests[-1].rows()[1:]]
    assert contents[:6] == ["p0", "done 0", "p1", "done 1", "p2", "done 2"]
    assert sum(text.startswith("[Tool results]") for text in contents) == 3


def test_without_tools_nothing_is_said_of_tools():
    assert instructions(()) == ""
    assert "grep" in instructions([ToolSpec("grep", "Find.", "{}")])


def test_results_of_one_round_stand_in_one_text():
    assert results_text([("a", "1"), ("b", "2")]).count("<tool_result") == 2


def test_only_closed_tags_without_a_call_are_unreadable():
    assert unreadable_calls(f"{CALL} <tool_call>x</tool_call> <tool_call>open") == 1


pieces = st.lists(
    st.sampled_from(["<tool_call>", "</tool_call>", "<", "tool", "_call>", "text ", "{}", "</"]), max_size=12
)


@given(parts=pieces, cuts=st.lists(st.integers(0, 200), max_size=10))
def test_any_way_to_cut_a_text_shows_the_same(parts, cuts):
    text = "".join(parts)
    marks = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    shown = TagFilter()
    seen = "".join(shown.feed(text[a:b]) for a, b in itertools.pairwise(marks)) + shown.finish()
    assert seen == visible_text(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a <b> c", "a <b> c"),
        (f"a {CALL} b", "a  b"),
        ("a <tool_ca", "a <tool_ca"),
        ("a <tool_call>never closed", "a "),
    ],
)
def test_what_is_outside_the_tags_is_shown(text, shown):
    assert visible_text(text) == shown
