"""Goals and pins through a session: who sets them, what goes first, what restarts and replays make of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from runtime.conversation.conversation import Conversation
from runtime.conversation.load_and_fork import read_state, rewind
from runtime.conversation.pin_and_expand import expand, pin, turn_numbers
from runtime.history.rows.pairs import pairs_ok
from runtime.session.session import Session
from runtime.store.memory import MemoryStore
from runtime.tools.talk.ask_and_plan import SetGoal
from runtime.values.errors import ContextWindowExceeded
from runtime.values.profiles import Profile
from runtime.values.prompt import Prompt, with_goal
from runtime.values.stored import SessionRecord
from schemas.session_state import GoalRecord, SessionState
from schemas.transcript import GoalStep
from tests.runtime.trimming.goal_rigs import SIZE, Talk, head, replayed, sent, stored_steps, talk
from tests.support.fakes import TIME, EchoTool, RecordingClient, ask, call, make_setup, script

MARK = "Goal changed: "


async def two_switches(retention: str) -> tuple[Talk, list[list[str]]]:
    """Three goals, each with more turns than the budget holds; the prompts of every request."""
    one = await talk(retention=retention)
    seen = []
    for goal in ("first", "second", "third"):
        await one.say(f"/goal {goal}".ljust(SIZE, "."))
        seen.append(one.prompts())
        for number in range(4):
            await one.say(f"{goal}{number}")
            seen.append(one.prompts())
    return one, seen


async def test_a_session_that_switches_its_goal_twice_past_its_budget():
    """The stale ask is the first thing gone, the goal's own first turn is always there, the marker stands."""
    one, seen = await two_switches("head-tail")
    assert seen[4] == ["first", "first0", "first1", "first2", "first3"]
    assert seen[5] == ["first1", "first2", "first3", "second"]
    assert all("second" in prompts for prompts in seen[5:10])
    assert seen[8] == ["second", "second0", "second1", "second2"]
    assert seen[9] == ["second", "second1", "second2", "second3"]
    assert seen[10] == ["second1", "second2", "second3", "third"]
    assert all("third" in prompts for prompts in seen[10:])
    assert seen[14] == ["third", "third1", "third2", "third3"]
    systems = [request.rows()[0].content for request in one.requests]
    assert [MARK in system for system in systems] == [False] * 5 + [True] * 10
    assert f"{MARK}third" in systems[-1]
    assert all(pairs_ok(request.rows()) for request in one.requests)
    assert {trim.strategy for trim in one.client.trims()} == {"head-tail"}
    assert list(map(sent, await replayed(one.store))) == list(map(sent, one.requests))


async def test_the_same_session_under_recent():
    """Beside it: the goal's first turn is lost like any other; only the marker still says what it was."""
    one, seen = await two_switches("recent")
    assert "second" not in seen[9]
    assert seen[14] == ["third0", "third1", "third2", "third3"]
    assert f"{MARK}third" in one.requests[-1].rows()[0].content
    assert list(map(sent, await replayed(one.store))) == list(map(sent, one.requests))


async def test_where_everything_fits_only_the_marker_counters_the_stale_ask():
    one = await talk(max_context_tokens=15_000)
    for text in ("a", "b", "/goal c"):
        await one.say(text)
    assert one.prompts() == ["a", "b", "c"]
    assert one.client.trims() == []
    assert (
        one.requests[-1]
        .rows()[0]
        .content.endswith("Goal changed: c. What was asked before it is background now, not a task.")
    )


async def test_the_first_turn_may_have_a_goal_that_counters_nothing():
    one = await talk()
    await one.say("/goal a")
    await one.say("b")
    assert MARK not in one.requests[-1].rows()[0].content
    goal = one.keeper.state.goal
    assert (goal.text, goal.supersedes, goal.position) == ("a", False, 1)
    assert goal.turn_id == one.keeper.history.turns[0].turn_id


async def test_the_same_goal_again_moves_nothing():
    one = await talk(max_context_tokens=15_000)
    for text in ("a", "/goal fix it", "b", "/goal  FIX  it"):
        await one.say(text)
    assert one.keeper.state.goal.turn_id == one.keeper.history.turns[1].turn_id
    assert one.keeper.state.goal.position == 3
    assert len(await stored_steps(one.store, GoalStep)) == 1


async def test_the_model_may_set_a_goal_in_the_running_turn():
    setting = {"calls": [{"name": "set_goal", "arguments": {"goal": "the docs"}}]}
    again = {"calls": [{"name": "set_goal", "arguments": {"goal": "The Docs"}}]}
    one = await talk({"text": "ok"}, setting, again, {"text": "ok", "repeat": True})
    await one.say("a")
    await one.say("now the docs")
    results = [row.content for row in one.requests[-1].rows() if row.role == "tool"]
    assert results == ["The goal is set.", "That is the goal already."]
    assert [MARK in request.rows()[0].content for request in one.requests] == [False, False, True, True]
    assert one.keeper.state.goal.turn_id == one.keeper.history.current.turn_id
    for number in range(5):
        await one.say(f"p{number}")
    assert one.prompts()[0] == "now the docs"
    assert list(map(sent, await replayed(one.store))) == list(map(sent, one.requests))


async def test_a_goal_is_durable_before_the_model_is_asked():
    one = await talk()
    await one.say("/goal a")
    keys = [entry.key.split(":", 2)[-1] for entry in await one.store.entries("s")]
    assert keys[:2] == ["prompt", "goal:1"]


async def test_after_a_restart_all_of_it_is_as_it_was():
    one = await talk()
    for text in ("a", "b", "/goal c", *"defghi"):
        await one.say(text)
    again = await talk(store=one.store)
    assert again.keeper.state == one.keeper.state
    old, new = one.keeper.history, again.keeper.history
    assert [(turn.turn_id, turn.rows) for turn in new.turns] == [
        (turn.turn_id, turn.rows) for turn in old.turns
    ]
    assert (new.beside.goal, new.beside.held) == (old.beside.goal, old.beside.held) != ("", 0)


@pytest.mark.parametrize("same_id", [True, False])
async def test_a_restored_session_sends_what_the_living_one_would(same_id: bool):
    """Ids that providers use again included: turns in the gap keep theirs."""
    more = {"id": "c1"} if same_id else {}
    rounds = [{"calls": [call("x" * 300, **more)]}, {"text": "ok"}] * 12
    one = await talk(*rounds)
    for text in ("a", *"bcdefg"):
        await one.say(text)
    copy = MemoryStore()
    record = await head(one.store)
    await copy.create_session(record)
    await copy.append("s", await one.store.entries("s", limit=10_000))
    again = await talk(*rounds[:2], store=copy)
    await one.say("next")
    await again.say("next")
    assert sent(again.requests[0])[1] == sent(one.requests[-2])[1]
    made = await replayed(copy)
    assert list(map(sent, made[-2:])) == list(map(sent, again.requests))


async def test_a_position_that_is_one_turn_early_loads_and_mends_itself():
    one = await talk(max_context_tokens=15_000)
    for text in ("a", "b", "c"):
        await one.say(text)
    record = await head(one.store)
    state = read_state(record.state).model_copy(
        update={"goal": GoalRecord(text="c", position=3, supersedes=True)}
    )
    old = MemoryStore()
    await old.create_session(record._replace(state=state.model_dump_json()))
    await old.append("s", await one.store.entries("s"))
    again = await talk(store=old, max_context_tokens=15_000)
    assert again.keeper.history.beside.goal == again.keeper.history.turns[1].turn_id
    await again.say("/goal d")
    assert again.keeper.history.beside.goal == again.keeper.history.turns[3].turn_id


async def test_a_goal_whose_turn_is_gone_is_no_boundary():
    one = await talk()
    for text in ("a", "/goal b", *"cdefgh"):
        await one.say(text)
    keeper = one.keeper
    keeper.history.beside = replace(keeper.history.beside, goal="gone")
    await one.say("i")
    assert one.prompts()[0] == "b"


async def test_rewound_to_before_a_goal_there_is_none():
    one = await talk()
    for text in ("a", "b", "/goal c", *"defg"):
        await one.say(text)
    source = await head(one.store)
    early = await rewind(one.store, source, 2, now=TIME)
    assert read_state(early.state).goal is None
    late = read_state((await rewind(one.store, source, 7, now=TIME)).state)
    assert late.goal is not None
    assert late.goal.text == "c"
    assert late.first_turn_id


async def test_turns_out_of_the_gap_come_back_when_limits_grow():
    one = await talk()
    for text in ("a", "b", "/goal c", *"defghi"):
        await one.say(text)
    dropped = one.keeper.state.dropped_turns
    roomy = replace(one.keeper.setup.profile, max_context_tokens=15_000)
    one.keeper.use(replace(one.keeper.setup, profile=roomy))
    back = await expand(one.session.conversation)
    assert 0 < back <= dropped
    await one.say("next")
    assert one.prompts()[-2:] == ["i", "next"]
    assert one.prompts()[0] == "c"
    assert list(map(sent, await replayed(one.store))) == list(map(sent, one.requests))
    again = await talk(store=one.store, max_context_tokens=15_000)
    assert [turn.turn_id for turn in again.keeper.history.turns] == [
        turn.turn_id for turn in one.keeper.history.turns
    ]


async def test_a_pinned_turn_stays_and_comes_back_after_a_restart():
    one = await talk(retention="recent")
    for text in ("a", "b", "c"):
        await one.say(text)
    numbers = await turn_numbers(one.store, "s")
    await pin(one.session.conversation, numbers[2])
    for text in "defgh":
        await one.say(text)
    assert one.prompts()[0] == "b"
    assert "c" not in one.prompts()
    again = await talk(store=one.store, retention="recent")
    await again.say("i")
    assert again.prompts()[0] == "b"
    made = await replayed(one.store)
    assert list(map(sent, made)) == list(map(sent, [*one.requests, *again.requests]))


async def test_pins_that_the_window_cannot_hold_are_named():
    one = await talk(retention="recent", max_context_tokens=15_000)
    await one.say("a" * 20_000)
    numbers = await turn_numbers(one.store, "s")
    await pin(one.session.conversation, numbers[1])
    keeper = one.keeper
    keeper.use(replace(keeper.setup, route=replace(keeper.setup.route, context_window=4000)))
    with pytest.raises(ContextWindowExceeded, match="`/pin off N` lets one go"):
        await one.say("b")


async def test_what_was_given_no_goal_is_sent_as_ever():
    """`recent`, no goal: byte for byte what a session sends that knows nothing of goals."""
    one = await talk(retention="recent")
    for text in "abcdef":
        await one.say(text)
    plain = script({"text": "ok", "repeat": True})
    session = Session(
        Conversation(
            "s",
            Path("/project"),
            make_setup(plain, Profile(max_context_tokens=2200), [EchoTool(), SetGoal()], window=16_000),
            await new_store(),
            RecordingClient(),
        )
    )
    for text in "abcdef":
        await ask(session, text.ljust(SIZE, "."))
    assert list(map(sent, one.requests)) == list(map(sent, plain.requests))


async def new_store() -> MemoryStore:
    store = MemoryStore()
    await store.create_session(SessionRecord("s", "/project", TIME, TIME))
    return store


def test_an_old_state_still_loads():
    state = SessionState.model_validate_json('{"version": 2, "first_turn_id": "t1", "dropped_turns": 3}')
    assert (state.held, state.goal, state.pins, state.notes) == ((), None, (), "")


@pytest.mark.parametrize(
    ("text", "goal", "prompt"),
    [
        ("/goal fix it", "fix it", "fix it"),
        ("  /goal\nfix it\nnow ", "fix it\nnow", "fix it\nnow"),
        ("/goal", "", "/goal"),
        ("/goals x", "", "/goals x"),
        ("", "", ""),
    ],
)
def test_the_command_is_the_prompt_too(text, goal, prompt):
    assert with_goal(Prompt(text, ())) == Prompt(prompt, (), goal)
