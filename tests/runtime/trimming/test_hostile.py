"""What a bounded turn withstands: views that are none, reused call ids, cancels and crashes at bad times."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest
import trio
import trio.testing

from runtime.conversation.load_and_fork import used_call_ids
from runtime.history.rows.pairs import pairs_ok
from runtime.history.rows.tool_rounds import Iteration, TrimView
from runtime.setup.session_setup import Summariser
from runtime.transcript.stored_history import UsedIds
from runtime.transcript.turn_record import read_turns
from runtime.trimming.catalog import create
from runtime.trimming.round_trimmers import TrimmerSettings
from runtime.values.errors import ConfigError
from runtime.values.events import Noticed
from runtime.values.profiles import Profile
from runtime.values.texts import CONTINUE
from tests.runtime.trimming.rigs import LookTool, history_rows, looking, replayed, rig, sent, trimmer
from tests.support.fakes import ask, prompt, script

SILENT = {"text": "too late", "delay": 1000}
"""A reply of which nothing was shown when its turn is cancelled: the request is not recorded either."""
CUTS = Profile(max_tool_iterations=50, running_turn_overflow="shorten")


@dataclass
class Answers:
    """A trimmer that answers whatever it likes."""

    makes: Callable[[Sequence[Iteration]], object]
    name: str = "liar"

    async def trim(self, history: Sequence[Iteration], prompt: str) -> TrimView:
        await trio.lowlevel.checkpoint()
        return self.makes(history)  # type: ignore[return-value]  # it lies


def result(output: Any) -> Callable[[Sequence[Iteration]], TrimView]:
    return lambda history: TrimView([history[0].with_outputs([output]), *history[1:]], True)


def breaks_late(history):
    yield history[0]
    raise RuntimeError("late")


def view(rounds: object, **more: Any) -> TrimView:
    """A view that need not be one."""
    return TrimView(cast(Sequence[Iteration], rounds), True, **more)


NO_VIEWS: dict[str, Callable[[Sequence[Iteration]], object]] = {
    "nothing": lambda history: None,
    "a list": list,
    "no history": lambda history: view(None),
    "numbers": lambda history: view([1]),
    "lazy": lambda history: view(breaks_late(history)),
    "no results": lambda history: view([replace(history[-1], tool_results=cast(Any, None))]),
    "a result that is no text": result(5),
    "a summary that is none": lambda history: view(history[-1:], summary=None),
    "a failure that is none": lambda history: view(history[-1:], failure=3),
    "a usage that is none": lambda history: view(history[-1:], usage=("route", 5)),
}


@pytest.mark.parametrize("makes", NO_VIEWS.values(), ids=NO_VIEWS)
async def test_what_is_no_view_changes_nothing_and_is_told(makes):
    wrong, plain = await rig(Answers(makes), *looking(3)), await rig(None, *looking(3))
    for one in (wrong, plain):
        assert await ask(one.session, "go") == "end_turn"
    assert list(map(sent, wrong.requests)) == list(map(sent, plain.requests))
    assert [event for event in wrong.client.events if isinstance(event, Noticed)]
    assert list(map(sent, await replayed(wrong.store))) == list(map(sent, wrong.requests))


@pytest.mark.parametrize(
    "makes",
    [
        result("half a pair: \ud83d"),
        lambda history: view(history[-1:], persist=True, summary="\udcff"),
        lambda history: view(history[-1:], persist=[1]),
    ],
)
async def test_odd_values_are_made_fit_to_be_recorded(makes):
    one = await rig(Answers(makes), *looking(3))
    assert await ask(one.session, "go") == "end_turn"
    assert one.client.trims()
    assert list(map(sent, await replayed(one.store))) == list(map(sent, one.requests))


async def test_a_summary_with_half_a_pair_is_one():
    small = script({"text": "short \ud83d", "repeat": True})
    one = await rig(trimmer("summarize:400/2", small), *looking(6))
    assert await ask(one.session, "go") == "end_turn"
    assert one.client.trims()


def test_a_factory_that_raises_is_a_wrong_setting():
    with pytest.raises(ConfigError, match="cannot be made: TypeError"):
        create("os:getcwd", TrimmerSettings())


# ---------------------------------------------------------------- reused ids


async def test_ids_of_folded_rounds_are_free_after_a_restart_as_they_were_before_it():
    """The folded turn is gone; a living session has forgotten the ids of its folded rounds."""
    small = script({"text": "short", "repeat": True})
    profile = Profile(max_tool_iterations=50, max_history_messages=1)
    one = await rig(trimmer("summarize:400/2", small), *looking(9, same_id=True), profile=profile)
    await ask(one.session, "go")
    await ask_again(one, *looking(1, same_id=True))
    await ask_again(one, *looking(1, same_id=True))
    again = await rig(None, *looking(2, same_id=True), profile=profile, store=one.store)
    old, new = one.session.conversation.keeper.history, again.session.conversation.keeper.history
    assert [turn.repaired.rows for turn in new.turns] == [turn.repaired.rows for turn in old.turns]
    await ask(again.session, "more")
    assert all(pairs_ok(request.rows()) for request in again.requests)
    made = await replayed(one.store)
    assert list(map(sent, made[-len(again.requests) :])) == list(map(sent, again.requests))


async def ask_again(one, *replies) -> None:
    model = script(*replies)

    async def get():
        await trio.lowlevel.checkpoint()
        return model

    talk = one.session.conversation
    talk.keeper.use(replace(talk.setup, provider=get))
    await ask(one.session, "next")


async def test_entries_and_records_name_the_same_ids():
    small = script({"text": "short", "repeat": True})
    one = await rig(trimmer("summarize:400/2", small), *looking(9), *looking(2))
    await ask(one.session, "go")
    await ask(one.session, "again")
    used = UsedIds()
    async for turn in read_turns(one.store, "s"):
        used.add_turn(turn)
    kept = [call.id for rows in history_rows(one) for row in rows for call in row.tool_calls]
    assert used.all() == kept
    assert await used_call_ids(one.store, "s", 2**31) == kept


# ---------------------------------------------------------------- bad moments


@pytest.mark.parametrize("rounds", [8, 9, 10])
async def test_a_turn_that_is_cancelled_where_it_was_shortened_goes_on(rounds: int):
    """The request with the shortened results was never recorded; that they are is."""
    look = {"calls": [{"name": "look", "arguments": {}}]}
    replies = ({**look, "repeat": rounds}, SILENT, {**look, "repeat": 4}, {"text": "done"})
    one = await rig(None, *replies, profile=CUTS, window=4000, tools=[LookTool(2000)])
    await stopped(one, rounds + 1)
    assert await ask(one.session, CONTINUE) == "end_turn"
    assert len(one.client.trims()) > 1
    del one.requests[rounds]
    assert list(map(sent, await replayed(one.store))) == list(map(sent, one.requests))
    assert any(row.content == CONTINUE for row in one.requests[-1].rows())


async def test_a_crash_where_a_turn_was_shortened_is_replayed_to_its_end():
    one = await rig(None, *looking(12), profile=CUTS, window=4000, tools=[LookTool(2000)])
    await ask(one.session, "go")
    entries = [entry for entry in await one.store.entries("s", limit=1000) if entry.kind != "end"]
    store = type(one.store)()
    record = await one.store.session("s")
    assert record is not None
    await store.create_session(record)
    await store.append("s", entries[:-1])
    again = await rig(None, *looking(4), profile=CUTS, window=4000, tools=[LookTool(2000)], store=store)
    await ask(again.session, CONTINUE)
    assert any(row.content == CONTINUE for row in again.requests[-1].rows())
    made = await replayed(store)
    assert list(map(sent, made[-len(again.requests) :])) == list(map(sent, again.requests))


async def test_notes_of_a_trim_whose_turn_was_cancelled_are_in_the_replay(monkeypatch):
    """The next turn trims without new notes: those before it stay."""
    small = script({"text": "short notes"}, {"text": "", "repeat": True})

    async def get():
        await trio.lowlevel.checkpoint()
        return small

    profile = Profile(max_history_messages=1, dropped_turns="summarize")
    one = await rig(None, {"text": "one"}, SILENT, {"text": "three", "repeat": True}, profile=profile)
    talk = one.session.conversation
    talk.keeper.use(replace(talk.setup, summarise=Summariser(get, talk.setup.route)))
    await ask(one.session, "first " * 200)
    await stopped(one, 2)
    await ask(one.session, "third")
    assert "short notes" in one.requests[-1].rows()[2].content
    assert sent((await replayed(one.store))[-1]) == sent(one.requests[-1])


async def stopped(one, requests: int) -> None:
    """A prompt that is cancelled while the model answers that request."""
    async with trio.open_nursery() as nursery:
        ticket = one.session.submit(prompt("go"))
        nursery.start_soon(one.session.run, ticket)
        with trio.fail_after(20):
            while len(one.requests) < requests:
                await trio.testing.wait_all_tasks_blocked(0.01)
        await trio.testing.wait_all_tasks_blocked(0.01)
        one.session.cancel()
