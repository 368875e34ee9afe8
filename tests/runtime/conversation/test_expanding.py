"""Dropped turns come back when limits have grown: offered once, only by the user's wish, and durable."""

from pathlib import Path

import pytest

from runtime.conversation.conversation import Conversation
from runtime.conversation.load_and_fork import read_state, restore
from runtime.conversation.pin_and_expand import could_return, expand, offer, records_before
from runtime.session.session import Session
from runtime.transcript.turn_record import read_turns
from runtime.values.events import Noticed
from runtime.values.profiles import Profile
from runtime.values.stored import Store
from tests.support.fakes import EchoTool, RecordingClient, ask, call, make_session, make_setup, script

SMALL = Profile(max_history_messages=2)
LARGE = Profile(max_history_messages=5)


async def spoken(prompts: int, profile: Profile = SMALL, **more: object) -> Store:
    """A session of that many turns, with tools in every other one, of which the profile kept the newest."""
    replies = [
        reply
        for n in range(prompts)
        for reply in (
            [{"text": f"a{n}"}] if n % 2 else [{"calls": [call(f"r{n}", id="c")]}, {"text": f"a{n}"}]
        )
    ]
    session, _, store = await make_session(script(*replies, **more), profile=profile, tools=[EchoTool()])
    for number in range(prompts):
        await ask(session, f"p{number}")
    return store


async def reopened(store: Store, profile: Profile, provider=None) -> tuple[Conversation, RecordingClient]:
    record = await store.session("s")
    assert record is not None
    client = RecordingClient()
    setup = make_setup(provider or script({"text": "x", "repeat": True}), profile, [EchoTool()])
    talk = Conversation("s", Path("/project"), setup, store, client, state=read_state(record.state))
    await restore(talk)
    return talk, client


def prompts_of(talk: Conversation) -> list[str]:
    return [turn.rows[0].content for turn in talk.keeper.history.turns]


def offers_of(client: RecordingClient) -> list[str]:
    return [event.description for event in client.events if isinstance(event, Noticed)]


async def test_nothing_comes_back_by_itself():
    store = await spoken(6)
    talk, client = await reopened(store, LARGE)
    assert prompts_of(talk) == ["p4", "p5"]
    assert client.events == []


async def test_the_offer_names_how_many_fit_and_is_made_once():
    store = await spoken(6)
    talk, client = await reopened(store, LARGE)
    await offer(talk)
    assert len(offers_of(client)) == 1
    assert offers_of(client)[0].startswith("2 of the 4 earlier turns")
    await ask(Session(talk), "more")
    await offer(talk)
    assert len(offers_of(client)) == 1


@pytest.mark.parametrize("profile", [SMALL, Profile(max_history_messages=1)])
async def test_no_offer_without_larger_limits(profile: Profile):
    store = await spoken(6)
    talk, client = await reopened(store, profile)
    await offer(talk)
    assert offers_of(client) == []


async def test_no_offer_when_nothing_was_dropped():
    store = await spoken(2)
    talk, client = await reopened(store, LARGE)
    await offer(talk)
    assert (await could_return(talk)).turns == 0
    assert offers_of(client) == []


async def test_what_fits_comes_back_with_a_place_left_for_the_next_prompt():
    store = await spoken(6)
    provider = script({"text": "x"})
    talk, client = await reopened(store, LARGE, provider)
    assert await expand(talk) == 2
    assert prompts_of(talk) == ["p2", "p3", "p4", "p5"]
    assert (talk.keeper.state.dropped_turns, talk.keeper.history.crumb_present) == (2, True)
    await ask(Session(talk), "next")
    assert client.trims() == []
    assert [row.content for row in provider.requests[0].rows() if row.role == "user"][1:] == [
        *("p2", "p3", "p4", "p5"),
        "next",
    ]


async def test_all_of_them_back_and_the_breadcrumb_goes():
    store = await spoken(4)
    talk, _ = await reopened(store, Profile(max_history_messages=20))
    assert await expand(talk) == 2
    assert prompts_of(talk) == ["p0", "p1", "p2", "p3"]
    assert not talk.keeper.history.crumb_present
    assert (talk.keeper.state.first_turn_id, talk.keeper.state.dropped_turns) == ("", 0)
    assert await expand(talk) == 0


async def test_it_survives_a_restart_and_is_the_history_of_one_that_dropped_nothing():
    store = await spoken(6)
    talk, _ = await reopened(store, LARGE)
    await expand(talk)
    again, client = await reopened(store, LARGE)
    assert prompts_of(again) == prompts_of(talk) == ["p2", "p3", "p4", "p5"]
    assert client.trims() == []
    assert [entry.kind for entry in await store.entries("s")][-1] == "expand"


async def test_by_tokens_only_what_fits_the_budget():
    session, client, store = await make_session(
        script({"text": "a" * 2000, "repeat": True}), profile=Profile(max_context_tokens=700)
    )
    for number in range(6):
        await ask(session, f"p{number}")
    assert client.trims()
    talk, _ = await reopened(store, Profile(max_context_tokens=2200))
    back = await expand(talk)
    assert 0 < back < 5
    assert talk.keeper.fitted().trims == ()
    assert (await could_return(talk)).turns == 0


async def test_a_prompt_that_joined_a_turn_comes_back_with_it():
    session, _, store = await make_session(
        script({"text": "a", "repeat": True}), profile=Profile(max_history_messages=1)
    )
    for text in ("p0", "[Tool results] more of p0", "p1", "p2"):
        await ask(session, text)
    talk, _ = await reopened(store, LARGE)
    assert await expand(talk) == 2
    assert prompts_of(talk) == ["p0", "p1", "p2"]
    first = talk.keeper.history.turns[0]
    assert [row.content for row in first.rows if row.role == "user"] == ["p0", "[Tool results] more of p0"]


async def test_records_are_read_backwards_whole_whatever_a_page_holds(monkeypatch: pytest.MonkeyPatch):
    store = await spoken(6)
    forward = [turn async for turn in read_turns(store, "s")]
    last = (await store.entries("s"))[-1].seq + 1
    for page in (1, 2, 3, 5, 1000):
        monkeypatch.setattr("runtime.conversation.pin_and_expand.PAGE", page)
        backward = [turn async for turn in records_before(store, "s", last)]
        assert [turn.turn_id for turn in backward] == [turn.turn_id for turn in reversed(forward)]
        assert [len(turn.iterations) for turn in backward] == [
            len(turn.iterations) for turn in reversed(forward)
        ]


async def test_a_session_of_an_older_version_is_not_offered_anything():
    store = await spoken(6)
    talk, client = await reopened(store, LARGE)
    talk.keeper.state = talk.keeper.state.model_copy(update={"limits": None})
    await offer(talk)
    assert offers_of(client) == []


async def test_a_learned_window_survives_a_restart_and_so_nothing_overflows_again():
    refused = {
        "error": {"status": 400, "code": "context_length_exceeded", "message": "7000 tokens > 900 maximum"}
    }
    session, _, store = await make_session(
        script({"text": "a" * 2000}, refused, {"text": "b"}),
        window=None,
        profile=Profile(max_context_tokens=30_000),
    )
    await ask(session, "p0")
    await ask(session, "p1")
    # The setup's own route has no window; a configured one would win.
    record = await store.session("s")
    assert record is not None
    setup = make_setup(script({"text": "c"}), Profile(max_context_tokens=30_000), window=None)
    talk = Conversation(
        "s", Path("/project"), setup, store, RecordingClient(), state=read_state(record.state)
    )
    await restore(talk)
    assert talk.keeper.route.learned_window == 900
    assert talk.keeper.fitted().budget.window == 900
