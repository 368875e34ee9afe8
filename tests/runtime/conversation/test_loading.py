"""A stored session comes back: the same rows for the model, everything for the person."""

from pathlib import Path

import pytest
import trio

from runtime.conversation.conversation import Conversation
from runtime.conversation.load_and_fork import read_state, replay, restore, tell_mended
from runtime.session.session import Session
from runtime.store.memory import MemoryStore
from runtime.values.events import AgentText, HistoryTrimmed, Noticed, ToolCallStarted, UserMessage
from runtime.values.profiles import Profile
from runtime.values.rows import Row
from runtime.values.stored import HeadChange
from runtime.values.texts import INTERRUPTED_RESULT, NOTES
from tests.support.fakes import EchoTool, RecordingClient, ask, call, make_session, make_setup, script


async def reopen(store, provider, *, profile: Profile | None = None) -> tuple[Session, RecordingClient]:
    """The session of the store in a new process, so to speak."""
    record = await store.session("s")
    client = RecordingClient()
    setup = make_setup(provider, profile, [EchoTool()])
    talk = Conversation("s", Path("/project"), setup, store, client)
    talk.keeper.state = read_state(record.state)
    await restore(talk)
    return Session(talk), client


async def spoken(profile: Profile | None = None, prompts: int = 3):
    """A store with some turns with tools, and the provider that saw them."""
    replies = [
        {"calls": [call(f"r{n}", id=f"c{n}")]} if n % 2 == 0 else {"text": f"t{n}"}
        for n in range(2 * prompts)
    ]
    provider = script(*replies)
    session, client, store = await make_session(provider, profile=profile, tools=[EchoTool()])
    for number in range(prompts):
        await ask(session, f"p{number}")
    return store, client, provider, session


async def test_the_model_sees_after_a_restart_what_it_would_have_seen_without():
    store, _, _, session = await spoken()
    again = script({"text": "x"})
    reopened, _ = await reopen(store, again)
    await ask(reopened, "more")
    provider2 = script({"text": "x"})
    session.conversation.keeper.use(make_setup(provider2, None, [EchoTool()]))
    await ask(session, "more")
    assert again.requests[0].rows() == provider2.requests[0].rows()


async def test_the_cut_survives_a_restart():
    profile = Profile(max_history_messages=2)
    store, _, _, _ = await spoken(profile, prompts=4)
    again = script({"text": "x"})
    reopened, client = await reopen(store, again, profile=profile)
    assert client.trims() == []
    assert reopened.conversation.keeper.history.crumb_present
    assert [turn.rows[0].content for turn in reopened.conversation.keeper.history.turns] == ["p2", "p3"]


async def test_replay_shows_everything_and_marks_the_first_kept_turn():
    profile = Profile(max_history_messages=2)
    store, live, _, _ = await spoken(profile, prompts=4)
    reopened, client = await reopen(store, script({"text": "x"}), profile=profile)
    await replay(reopened.conversation)
    prompts = [event for event in client.events if isinstance(event, UserMessage)]
    assert [event.block["text"] for event in prompts] == ["p0", "p1", "p2", "p3"]
    assert [event.restored_dropped_turns for event in prompts] == [0, 0, 2, 0]
    assert client.text() == live.text()
    replayed = [event for event in client.events if isinstance(event, ToolCallStarted)]
    announced = [event for event in live.events if isinstance(event, ToolCallStarted)]
    assert [(e.call_id, e.title, e.kind, e.raw_input, e.locations) for e in replayed] == [
        (e.call_id, e.title, e.kind, e.raw_input, e.locations) for e in announced
    ]
    assert [(event.status, event.content) for event in replayed] == [
        ("completed", f"r{n}") for n in (0, 2, 4, 6)
    ]


async def test_limits_that_shrank_trim_at_load_and_say_so_first():
    store, _, _, _ = await spoken(prompts=4)
    reopened, client = await reopen(store, script({"text": "x"}), profile=Profile(max_history_messages=2))
    await replay(reopened.conversation)
    assert isinstance(client.events[0], HistoryTrimmed)
    assert (client.events[0].dropped_turns, client.events[0].kept_turns) == (2, 2)
    _, quiet = await reopen(store, script({"text": "x"}), profile=Profile(max_history_messages=2))
    assert quiet.trims() == []


async def test_a_load_changes_nothing_in_the_store():
    store, _, _, _ = await spoken()
    before = await store.entries("s"), await store.session("s")
    reopened, _ = await reopen(store, script({"text": "x"}))
    await replay(reopened.conversation)
    assert (await store.entries("s"), await store.session("s")) == before


@pytest.mark.parametrize("kept", range(1, 5))
async def test_a_session_cut_anywhere_by_a_crash_loads_and_goes_on(kept):
    """The store as a crash left it: only the first entries are there."""
    store, _, _, _ = await spoken(prompts=1)
    entries = [entry for entry in await store.entries("s") if entry.kind != "setup"]
    record = await store.session("s")
    assert record is not None
    crashed = MemoryStore()
    await crashed.create_session(record)
    await crashed.append("s", entries[:kept])
    provider = script({"text": "on"})
    reopened, client = await reopen(crashed, provider)
    await replay(reopened.conversation)
    calls = [event for event in client.events if isinstance(event, ToolCallStarted)]
    assert all(event.status in ("completed", "failed") for event in calls)
    assert all((event.title, event.kind) == ("Echo r0", "execute") for event in calls)
    assert await ask(reopened, "next") == "end_turn"
    rows = provider.requests[0].rows()
    assert rows[-2].content == NOTES["crash"]
    assert (INTERRUPTED_RESULT in [row.content for row in rows]) == (kept in (2, 3))


async def test_partial_text_of_a_crash_is_shown_and_known_to_the_model(autojump_clock):
    session, _, store = await make_session(
        script({"text": ["one ", "two "], "chunk_delay": 0.3, "hang": True})
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, session, "go")
        await trio.sleep(5)
        entries, record = await store.entries("s"), await store.session("s")
        nursery.cancel_scope.cancel()
    assert record is not None
    crashed = MemoryStore()
    await crashed.create_session(record)
    await crashed.append("s", entries)
    provider = script({"text": "on"})
    reopened, client = await reopen(crashed, provider)
    await replay(reopened.conversation)
    texts = [event.text for event in client.events if isinstance(event, AgentText)]
    assert texts == ["one two "]
    await ask(reopened, "next")
    assert provider.requests[0].rows()[2].content == f"one two \n\n{NOTES['crash']}"


async def test_unreadable_and_unknown_entries_are_passed_over():
    store, _, _, _ = await spoken(prompts=1)
    entry = (await store.entries("s"))[0]
    await store.append(
        "s", [entry._replace(key="turn:z:x", kind="new", payload=b'{"kind":"from a later version"}')]
    )
    await store.append("s", [entry._replace(key="turn:z:y", kind="bad", payload=b"\xff")])
    provider = script({"text": "on"})
    reopened, _ = await reopen(store, provider)
    assert await ask(reopened, "next") == "end_turn"
    assert provider.requests[0].rows()[1].content == "p0"


async def test_a_turn_without_its_end_and_results_is_completed():
    """Two turns that name the same call; the second one has no result and no end."""
    store, _, _, _ = await spoken(prompts=1)
    entries = await store.entries("s")
    record = await store.session("s")
    assert record is not None
    broken = MemoryStore()
    await broken.create_session(record)
    twice = entries[1]._replace(key="turn:z:iter:0", turn_id="z")
    await broken.append("s", [*entries, entries[0]._replace(key="turn:z:prompt", turn_id="z"), twice])
    provider = script({"text": "on"})
    reopened, client = await reopen(broken, provider)
    assert await ask(reopened, "next") == "end_turn"
    assert client.trims() == []


async def test_what_was_mended_in_a_broken_history_is_told_with_the_next_turn():
    session, client, _ = await make_session(script({"text": "on"}))
    talk = session.conversation
    talk.keeper.history.open_turn("a", Row("user", "hi"))
    talk.keeper.history.append([Row("tool", "nobody asked", tool_call_id="x"), Row("assistant", "so")])
    tell_mended(talk)
    assert await ask(session, "next") == "end_turn"
    notices = [event for event in client.events if isinstance(event, Noticed)]
    assert [notice.title for notice in notices] == ["The stored history was repaired"]
    assert "1 turns, 1 rows and 0 calls" in notices[0].description


async def test_a_replay_completes_the_history_with_the_ids_of_turns_that_are_gone():
    """A provider that repeats its ids: what is sent after a load is what would have been sent without."""
    replies = [{"calls": [call("r", id="c")]}, {"text": "t"}] * 4
    profile = Profile(max_history_messages=2)
    session, _, store = await make_session(script(*replies), profile=profile, tools=[EchoTool()])
    for number in range(4):
        await ask(session, f"p{number}")
    record, client, again = await store.session("s"), RecordingClient(), script({"text": "x"})
    assert record is not None
    talk = Conversation(
        "s",
        Path("/project"),
        make_setup(again, profile, [EchoTool()]),
        store,
        client,
        state=read_state(record.state),
    )
    await restore(talk, replayed=True)
    await replay(talk)
    await ask(Session(talk), "more")
    other = script({"text": "x"})
    session.conversation.keeper.use(make_setup(other, profile, [EchoTool()]))
    await ask(session, "more")
    assert again.requests[0].rows() == other.requests[0].rows()
    ids = [one.id for row in again.requests[0].rows() for one in row.tool_calls]
    assert ids == ["c_4"]


async def test_a_history_that_was_used_meanwhile_is_not_replaced():
    store, _, _, _ = await spoken(Profile(max_history_messages=2), prompts=4)
    reopened, _ = await reopen(store, script({"text": "x"}), profile=Profile(max_history_messages=2))
    talk = reopened.conversation
    talk.notes.restored = talk.keeper.history, talk.keeper.history.row_count
    await ask(reopened, "quick")
    history = talk.keeper.history
    await replay(talk)
    assert talk.keeper.history is history


async def test_a_state_that_cannot_be_read_does_not_close_the_session():
    store, _, _, _ = await spoken()
    await store.append("s", (), head=HeadChange(state='{"version": 2, "dro'))
    reopened, client = await reopen(store, script({"text": "x"}))
    await replay(reopened.conversation)
    assert len([event for event in client.events if isinstance(event, UserMessage)]) == 3
    assert reopened.conversation.keeper.history.turn_count == 3
