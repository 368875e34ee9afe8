"""Meters that stay true: a newest turn above the budget, a prompt that was cut, a model that was changed."""

from dataclasses import replace

import trio

from runtime.conversation.load_and_fork import read_state, restore
from runtime.history.request.compose import compose
from runtime.history.request.trims import trim_after_reply
from runtime.replay.stored_session import replay_session
from runtime.session.session import Session
from runtime.values.events import Noticed, UsageChanged
from runtime.values.profiles import Profile, Route
from tests.runtime.conversation.test_switching import Rig, rig, setup
from tests.runtime.history.helpers import plain_history
from tests.support.fakes import RecordingClient, ask, make_session, prompt, script

BUDGET = Profile(max_context_tokens=2000)
ABOVE = "The newest turn is larger than the context budget"
CUT = "The provider seems to have cut the prompt"


def notices(client: RecordingClient) -> list[str]:
    return [event.title for event in client.events if isinstance(event, Noticed)]


def sizes(client: RecordingClient) -> list[tuple[int, int]]:
    return [(event.used, event.size) for event in client.events if isinstance(event, UsageChanged)]


# ------------------------------------------------------------ the newest turn alone


async def test_a_newest_turn_above_the_budget_says_by_how_much_in_the_trims_notice():
    session, client, _ = await make_session(script({"text": "ok", "repeat": True}), profile=BUDGET)
    await ask(session, "y" * 400)
    assert client.trims() == []
    await ask(session, "x" * 20_000)
    (trim,) = client.trims()
    assert trim.tokens is not None
    assert (trim.kept_turns, trim.tokens.budget) == (1, 2000)
    over = trim.tokens.after - 2000
    assert over > 3000
    assert (
        f"about {trim.tokens.after} tokens are sent, {over} more than the 2000 there is room for" in trim.note
    )
    assert trim.note.startswith("The newest turn alone is larger than the context budget")
    assert ABOVE not in notices(client)


async def test_without_a_trim_it_is_a_notice_of_its_own_once_a_turn():
    session, client, _ = await make_session(script({"text": "ok", "repeat": True}), profile=BUDGET)
    await ask(session, "x" * 20_000)
    assert client.trims() == []
    (told,) = [event for event in client.events if isinstance(event, Noticed)]
    assert told.title == ABOVE
    assert "3" in told.description.split(" more than the 2000")[0]


def test_a_turn_that_fits_says_nothing():
    composed = compose(plain_history(20), Profile(max_context_tokens=300), Route("p", "m", 100_000))
    assert composed.trims[0].note == ""
    assert composed.warnings == ()


def test_pinned_turns_are_named_where_they_are_what_stays():
    history = plain_history(4, 4000)
    history.beside = replace(history.beside, pins=frozenset({"t0"}))
    composed = compose(history, Profile(max_context_tokens=1000), Route("p", "m", 100_000))
    assert composed.trims[0].note.startswith("The newest turn and those that never go are larger")


def test_a_floor_that_fills_the_budget_says_so_and_nothing_of_the_turn():
    history = plain_history(3, system=("s" * 8000,))
    composed = compose(history, Profile(max_context_tokens=1000), Route("p", "m", 100_000))
    assert composed.trims[0].note == ""
    assert [told.title for told in composed.warnings] == ["System prompt and tools fill the context budget"]


def test_the_trim_after_a_reply_says_it_too():
    route, profile = Route("p", "m", 100_000), Profile(max_context_tokens=5000)
    history = plain_history(3, 4000)
    composed = compose(history, profile, route)
    left, notice = trim_after_reply(composed, history, composed.raw_tokens * 8, profile)
    assert notice is not None
    assert notice.tokens is not None
    assert left.turn_count == 1
    assert f"{notice.tokens.after - 5000} more than the 5000" in notice.note


# ------------------------------------------------------------ a prompt that was cut


def counted(tokens: int, **more: object) -> dict[str, object]:
    return {"text": "ok", "usage": {"input": tokens, "output": 5}, **more}


async def test_what_the_provider_left_of_a_prompt_is_learned_like_an_overflows_limit():
    model = script(counted(4096), counted(700), counted(900))
    session, client, store = await make_session(
        model, profile=Profile(max_context_tokens=100_000), window=None
    )
    await ask(session, "a" * 60_000)
    assert notices(client) == [CUT]
    assert sizes(client)[-1] == (4101, 4096)
    keeper = session.conversation.keeper
    assert (keeper.route.learned_window, keeper.route.window_inferred) == (4096, True)
    await ask(session, "b" * 2000)
    (trim,) = client.trims()
    assert (trim.dropped_turns, trim.size) == (1, 4096)
    assert trim.tokens is not None
    assert trim.tokens.after <= 4096 - 1024
    record = await store.session("s")
    assert record is not None
    learned = read_state(record.state).learned
    assert learned is not None
    assert (learned.window, learned.inferred) == (4096, True)
    await replayed(store)


async def test_it_closes_no_session_and_is_told_once():
    """It only showed: what is larger is sent all the same, and cut again, which is known by now."""
    model = script(counted(4096, repeat=True))
    session, client, store = await make_session(
        model, profile=Profile(max_context_tokens=100_000), window=None
    )
    for letter in "abc":
        assert await ask(session, letter * 60_000) == "end_turn"
    assert notices(client) == [CUT, *["The request may be too large for the model"] * 2]
    assert [trim.dropped_turns for trim in client.trims()] == [1, 1]
    assert len(model.requests) == 3
    await replayed(store)


async def test_another_limit_is_told_again():
    model = script(counted(4096), counted(8192))
    session, client, _ = await make_session(model, profile=Profile(max_context_tokens=100_000), window=None)
    for letter in "ab":
        await ask(session, letter * 120_000)
    assert notices(client).count(CUT) == 2
    assert sizes(client)[-1] == (8197, 8192)


async def test_a_window_that_a_person_set_stays():
    session, client, _ = await make_session(script(counted(4096)), window=200_000)
    await ask(session, "a" * 60_000)
    assert sizes(client)[-1] == (4101, 200_000)
    (told,) = [event for event in client.events if isinstance(event, Noticed) and event.title == CUT]
    assert "requests are kept" not in told.description


async def test_who_takes_more_later_was_misjudged_and_is_not_judged_again():
    """A provider that does not count what it had in its cache."""
    model = script(counted(300), counted(2500), counted(300))
    session, _, store = await make_session(model, profile=Profile(max_context_tokens=100_000), window=None)
    keeper = session.conversation.keeper
    await ask(session, "a" * 10_000)
    assert keeper.route.learned_window == 300
    await ask(session, "b" * 10_000)
    assert keeper.route == session.conversation.setup.route
    await ask(session, "c" * 10_000)
    assert keeper.route.learned_window is None
    record = await store.session("s")
    assert record is not None
    assert read_state(record.state).learned is None
    await replayed(store)


async def test_it_holds_after_a_restart():
    model = script(counted(4096), counted(500))
    first, _, store = await make_session(model, profile=Profile(max_context_tokens=100_000), window=None)
    await ask(first, "a" * 60_000)
    record = await store.session("s")
    assert record is not None
    again = first.conversation
    talk = type(again)(
        "s", again.tool_context.cwd, again.setup, store, RecordingClient(), state=read_state(record.state)
    )
    await restore(talk)
    assert (talk.keeper.route.learned_window, talk.keeper.route.window_inferred) == (4096, True)
    assert await ask(Session(talk), "b" * 60_000) == "end_turn"


async def replayed(store) -> None:
    """Every request can be made again from what is stored."""
    async with trio.open_nursery():
        calls = [one async for one in replay_session(store, "s") if one.call is not None]
    assert calls


# ------------------------------------------------------------ another model


async def show(it: Rig) -> None:
    """What a client's own switch does while no turn runs."""
    talk = it.session.conversation
    assert talk.switching is not None
    await talk.switching.show(talk.keeper)


async def test_the_meter_moves_as_soon_as_another_model_is_set():
    it = await rig(a=setup("a", 1_000_000), b=setup("b", 128_000))
    it.choose("model", "b/m")
    await show(it)
    assert sizes(it.client) == [], "nothing is in it yet"
    it.choose("model", "a/m")
    await ask(it.session, "one")
    ((used, size),) = sizes(it.client)
    assert size == 1_000_000
    it.choose("model", "b/m")
    await show(it)
    assert sizes(it.client)[1:] == [(used, 128_000)]
    await show(it)
    assert len(sizes(it.client)) == 2, "it stands there already"
    await ask(it.session, "two")
    assert [size for _, size in sizes(it.client)] == [1_000_000, 128_000, 128_000]


async def test_it_moves_with_what_was_learned_of_that_model():
    it = await rig(a=setup("a", 1_000_000), b=setup("b", None))
    keeper = it.session.conversation.keeper
    await ask(it.session, "one")
    it.choose("model", "b/m")
    await ask(it.session, "two")
    keeper.route = type(keeper.route)("b", "m", None, learned_window=64_000)
    it.choose("model", "a/m")
    await ask(it.session, "three")
    it.choose("model", "b/m")
    await show(it)
    assert sizes(it.client)[-1][1] == 64_000
    last = [event for event in it.client.events if isinstance(event, UsageChanged)][-1]
    assert not last.size_is_budget


async def test_a_profile_moves_it_where_it_shows_the_budget():
    it = await rig(a=setup("a", None))
    await ask(it.session, "one")
    it.choose("profile", "tight")
    await show(it)
    last = [event for event in it.client.events if isinstance(event, UsageChanged)][-1]
    assert (last.size, last.size_is_budget) == (8000, True)


async def test_what_is_set_while_a_turn_runs_moves_it_with_the_end():
    it = await rig(a=setup("a", 1_000_000), b=setup("b", 128_000))
    ticket = it.session.submit(prompt("one"))
    it.choose("model", "b/m")
    await it.session.run(ticket)
    assert [size for _, size in sizes(it.client)] == [1_000_000, 128_000]
