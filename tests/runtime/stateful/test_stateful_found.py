"""What random sessions have found, each as the shortest talk that shows it."""

from dataclasses import replace

import pytest

from runtime.conversation.load_and_fork import stored_history
from runtime.transcript.turn_record import read_turns
from runtime.values.errors import ContextWindowExceeded
from runtime.values.model import ModelRequest
from runtime.values.profiles import Profile
from runtime.values.rows import Row
from tests.runtime.cases.harness import fixed_tool
from tests.runtime.stateful.stateful import Watched
from tests.support.fakes import EchoTool, ask, call, make_session, prompt, script

REFUSED = {"error": {"status": 400, "message": "This model's maximum context length is 900 tokens."}}
UNREADABLE = "<tool_call>{broken}</tool_call>"


def live_rows(session) -> list[Row]:
    """All kept rows."""
    return [row for turn in session.conversation.keeper.history.turns for row in turn.rows]


async def stored_rows(session) -> list[Row]:
    """All kept rows as a restart would have them."""
    return [row for turn in (await stored_history(session.conversation)).turns for row in turn.rows]


async def test_a_reply_with_unreadable_calls_is_stored_too():
    session, _, _ = await make_session(script({"text": UNREADABLE}, {"text": "ok"}), prompt_tools=True)
    await ask(session, "go")
    assert [row.content for row in live_rows(session)][1] == UNREADABLE
    assert await stored_rows(session) == live_rows(session)


async def test_a_prompt_that_is_cancelled_while_it_is_stored_is_stored_in_the_end():
    session, _, store = await make_session(script({"text": "never"}))
    ticket = session.submit(prompt("go"))
    session.cancel()
    assert await session.run(ticket) == "cancelled"
    turns = [turn async for turn in read_turns(store, "s")]
    assert [turn.prompt.text for turn in turns if turn.prompt] == [row.content for row in live_rows(session)][
        :1
    ]
    assert await stored_rows(session) == live_rows(session)


@pytest.mark.parametrize("turns", [1, 3])
async def test_turns_that_were_trimmed_for_a_prompt_stay_gone_when_it_is_refused(turns):
    replies = [{"text": "ok", "repeat": turns}, REFUSED, {"text": "on"}]
    session, client, _ = await make_session(script(*replies), window=None)
    for number in range(turns):
        await ask(session, f"p{number}")
    keeper = session.conversation.keeper
    keeper.setup = replace(keeper.setup, profile=Profile(max_history_messages=0))
    with pytest.raises(ContextWindowExceeded):
        await ask(session, "日本語" * 600)
    assert [(trim.dropped_messages, trim.dropped_turns) for trim in client.trims()] == [(2 * turns, turns)]
    assert keeper.history.crumb_present
    assert await stored_rows(session) == live_rows(session) == []
    await ask(session, "next")
    assert len(client.trims()) == 1
    assert await stored_rows(session) == live_rows(session)


async def test_call_ids_keep_their_names_after_a_restart_when_the_first_use_is_gone():
    calls = [{"calls": [call("a", id="c1")]}, {"text": "ok"}] * 3
    session, _, _ = await make_session(
        script(*calls), profile=Profile(max_history_messages=1), tools=[EchoTool()]
    )
    for number in range(3):
        await ask(session, f"p{number}")
    live, stored = session.conversation.keeper.history, await stored_history(session.conversation)
    assert live.turns[-1].repaired.rows == stored.turns[-1].repaired.rows
    assert stored.turns[-1].repaired.rows[1].tool_calls[0].id == "c1_3"


async def test_call_ids_keep_their_names_when_a_result_prompt_follows_a_refused_one():
    requests: list[ModelRequest] = []
    calls = [{"calls": [call("a", id="c1")]}, {"text": "ok"}]
    provider = Watched(script(*calls, *calls, {"text": "on", "repeat": True}), requests.append)
    session, _, _ = await make_session(provider, tools=[EchoTool()], window=2000)
    await ask(session, "p0")
    await ask(session, "p1")
    with pytest.raises(ContextWindowExceeded):
        await ask(session, "x" * 40_000)
    await ask(session, "[Tool results] by hand")
    names = [one.id for row in requests[-1].rows() for one in row.tool_calls]
    assert names == ["c1", "c1_2"]


async def test_two_shortenings_for_one_request_are_told_apart():
    rounds = [{"calls": [{"name": "read", "id": f"c{number}"}]} for number in range(9)]
    refused = {"error": {"status": 413}}
    provider = script(*rounds, refused, refused, {"text": "ok"})
    session, client, _ = await make_session(
        provider,
        profile=Profile(running_turn_overflow="shorten"),
        tools=[fixed_tool("read", "x" * 1200)],
        window=None,
    )
    assert await ask(session, "go") == "end_turn"
    ids = [trim.trim_id for trim in client.trims()]
    assert len(ids) == 2
    assert len(set(ids)) == 2
