"""`/compact` and `/clear`: what leaves the model's view, who is told, and that every way back agrees."""

from contextlib import aclosing
from pathlib import Path

import pytest

from acp_server.commands.commands import answer_locally
from runtime.conversation.conversation import Conversation
from runtime.conversation.load_and_fork import read_state, replay, restore, rewind
from runtime.history.rows.boundaries import BREADCRUMB_TEXT
from runtime.history.rows.notice import Reason
from runtime.providers.scripted.provider import ScriptedProvider
from runtime.replay.stored_session import replay_session
from runtime.session.session import Session
from runtime.store.memory import MemoryStore
from runtime.values.events import UserMessage
from runtime.values.profiles import Profile
from runtime.values.stored import SessionRecord, Store
from tests.support.fakes import TIME, EchoTool, RecordingClient, ask, call, make_setup, script

ONCE = {"calls": [call("x", id="same")]}


def opened(
    provider: ScriptedProvider, store: Store, record: SessionRecord, profile: Profile | None = None
) -> tuple[Session, RecordingClient]:
    client = RecordingClient()
    setup = make_setup(provider, profile, [EchoTool()])
    talk = Conversation(
        record.session_id,
        Path("/project"),
        setup,
        store,
        client,
        state=read_state(record.state),
        local=answer_locally,
    )
    return Session(talk), client


async def talked(*prompts: str) -> tuple[Store, ScriptedProvider, Session, RecordingClient]:
    """A session in which all this was said; calls of the first answers share an id."""
    provider, store = script(ONCE, {"text": "a"}, ONCE, {"text": "b"}, echo="{turn}"), MemoryStore()
    record = SessionRecord("s", "/project", TIME, TIME)
    await store.create_session(record)
    session, client = opened(provider, store, record)
    for text in prompts:
        await ask(session, text)
    return store, provider, session, client


async def reopened(store: Store, session_id: str = "s") -> tuple[Session, ScriptedProvider, RecordingClient]:
    record = await store.session(session_id)
    assert record is not None
    provider = script(echo="{turn}")
    session, client = opened(provider, store, record)
    await restore(session.conversation)
    return session, provider, client


async def said_to_model(session: Session, provider: ScriptedProvider) -> list[str]:
    """What a next prompt sends, the system text aside."""
    await ask(session, "and now?")
    return [f"{row.role}: {row.content}" for row in provider.requests[-1].rows() if row.role != "system"]


@pytest.mark.parametrize(
    ("command", "kept", "left"),
    [
        ("/compact 1", 1, ["user: three"]),
        ("/compact", 2, ["user: two", "user: three"]),
        ("/compact 2", 2, ["user: two", "user: three"]),
        ("/clear", 0, []),
    ],
)
async def test_what_leaves_is_told_and_stays_gone_in_every_way_back(command: str, kept: int, left: list[str]):
    store, provider, session, client = await talked("one", "two", "three", command)
    (trim,) = client.trims()
    assert (trim.kept_turns, trim.dropped_turns) == (kept, 3 - kept)
    assert (trim.reason, trim.strategy) == (Reason.USER.value, "user")
    assert session.conversation.keeper.history.turn_count == kept
    again, provider2, _ = await reopened(store)
    state = again.conversation.keeper.state
    assert (state.dropped_turns, state.history_has_trim_breadcrumb) == (3 - kept, True)
    said = await said_to_model(again, provider2)
    assert said[0] == f"user: {BREADCRUMB_TEXT}"
    assert [text for text in said if text.startswith("user: ")][1:-1] == left
    live = await said_to_model(session, provider)
    assert live == said


async def test_replay_makes_the_same_requests_again_around_both():
    store, _, session, _ = await talked("one", "two", "/compact 1", "three", "/clear", "four", "/clear", "/x")
    calls = []
    async with aclosing(replay_session(store, "s")) as made:
        async for one in made:
            calls += [one.call] if one.call else []
    assert len(calls) == 7
    assert session.conversation.keeper.history.turn_count == 1


async def test_rewind_to_a_cleared_point_sees_nothing_and_before_it_everything():
    store, *_ = await talked("one", "two", "/clear", "three")
    source = await store.session("s")
    assert source is not None
    for number, left in ((2, ["user: one", "user: two"]), (3, []), (4, ["user: three"])):
        made = await rewind(store, source, number, now=TIME)
        session, provider, _ = await reopened(store, made.session_id)
        said = await said_to_model(session, provider)
        assert [t for t in said if t.startswith("user: ") and BREADCRUMB_TEXT not in t][:-1] == left


async def test_expand_brings_back_what_was_cleared():
    store, provider, session, client = await talked("one", "two", "/clear", "three")
    await ask(session, "/expand")
    assert "The model sees 2 earlier turns again. Nothing is left out any more." in client.text()
    said = await said_to_model(session, provider)
    assert [t for t in said if t.startswith("user: ")] == [
        f"user: {t}" for t in ("one", "two", "three", "and now?")
    ]
    again, _, _ = await reopened(store)
    assert again.conversation.keeper.history.turn_count == 4


async def test_the_transcript_stays_whole_and_marks_the_place():
    store, *_ = await talked("one", "two", "/clear")
    session, _, client = await reopened(store)
    await replay(session.conversation)
    shown = [event for event in client.events if isinstance(event, UserMessage)]
    assert [event.block["text"] for event in shown] == ["one", "two", "/clear"]
    assert [event.restored_dropped_turns for event in shown] == [0, 0, 2]


@pytest.mark.parametrize("command", ["/compact", "/compact 5", "/clear"])
async def test_with_nothing_to_leave_out_nothing_is_told(command: str):
    _, _, session, client = await talked(command)
    assert client.text().startswith("Nothing to leave out: ")
    assert client.trims() == []
    assert session.conversation.keeper.state.dropped_turns == 0


@pytest.mark.parametrize("word", ["0", "-1", "many", "1.5"])
async def test_a_number_that_is_none_changes_nothing(word: str):
    _, _, session, client = await talked("one", "two", f"/compact {word}")
    assert "keeps the newest N turns" in client.text()
    assert session.conversation.keeper.history.turn_count == 2
