"""What the API tells of cuts other than a plain one: held turns, rounds of a turn, turns that came back."""

from dataclasses import replace
from typing import Any

from acp_server.commands.commands import answer_locally
from acp_server.gateway.api.turn_index import TurnIndex
from runtime.session.session import Session
from runtime.trimming.catalog import parse_descriptor, trimmer_of
from runtime.values.profiles import Profile
from runtime.values.stored import Store
from tests.acp_server.gateway.looked import Desk, desk, talked
from tests.support.fakes import EchoTool, ask, call, make_session, script


async def views(client: Desk) -> dict[int | None, str]:
    """What the model gets of each turn."""
    page = await client.get("/api/sessions/s/transcript", limit=100)
    return {turn["number"]: turn["view"] for turn in page["turns"]}


async def whole_and_paged(client: Desk) -> tuple[list[Any], list[Any]]:
    """The timeline in one page, and two turns at a time."""
    whole = (await client.get("/api/sessions/s/timeline", limit=100))["requests"]
    pages, after = [], 0
    while after is not None:
        page = await client.get("/api/sessions/s/timeline", limit=2, after=after)
        pages += page["requests"]
        after = page["next_after"]
    return whole, pages


def as_last_meter(session: Session, point: dict[str, Any]) -> bool:
    """Whether a point says what the session's own last request was."""
    composed = session.conversation.keeper.composed
    assert composed is not None
    return (point["estimated"], point["used"], point["collapsed_turns"]) == (
        composed.raw_tokens,
        composed.estimated_tokens,
        composed.collapsed_turns,
    )


async def test_the_last_point_is_the_last_request() -> None:
    for turns in (1, 4, 9):
        session, store = await talked(turns)
        async with desk(store, session) as client:
            points = (await client.get("/api/sessions/s/timeline", limit=100))["requests"]
        assert as_last_meter(session, points[-1])


async def test_a_held_head_stays_in_view_and_is_not_told_as_dropped() -> None:
    profile = Profile(retention="head-tail", max_history_messages=4)
    session, store = await talked(9, profile)
    async with desk(store, session) as client:
        found = await views(client)
        trims = (await client.get("/api/sessions/s/trims"))["trims"]
        whole, pages = await whole_and_paged(client)
    assert found[1] == "collapsed"
    assert [number for number, view in found.items() if view == "dropped"] == [2, 3, 4, 5, 6]
    assert [trim["dropped"] for trim in trims] == [[{"first": n, "last": n}] for n in range(2, 7)]
    assert whole == pages
    assert as_last_meter(session, whole[-1])


async def test_rounds_that_a_turn_left_out_are_notices_of_that_turn() -> None:
    provider = script({"calls": [call("x" * 400)], "repeat": 4}, {"text": "done"}, loop=True)
    session, _, store = await make_session(provider, tools=[EchoTool()])
    keeper = session.conversation.keeper
    trimmer = trimmer_of(parse_descriptor("count:1"), 0.0, None)
    keeper.setup = replace(keeper.setup, trimmer=trimmer)
    await ask(session, "go on")
    async with desk(store, session) as client:
        trims = (await client.get("/api/sessions/s/trims"))["trims"]
        whole, _ = await whole_and_paged(client)
        (turn,) = (await client.get("/api/sessions/s/transcript"))["turns"]
    assert {trim["reason"] for trim in trims} == {"loop context trimmed"}
    assert [trim["call"] for trim in trims] == [3, 4, 5]
    assert {(trim["turn"], trim["dropped_turns"], tuple(trim["dropped"])) for trim in trims} == {(1, 0, ())}
    assert [part["type"] for part in turn["parts"]].count("trim") == 3
    assert [len(one["trims"]) for one in whole] == [0, 0, 1, 1, 1]
    assert as_last_meter(session, whole[-1])


async def with_commands(turns: int) -> tuple[Session, Store]:
    """A session that answers commands."""
    session, store = await talked(turns, Profile(max_history_messages=20))
    session.conversation._local = answer_locally
    return session, store


async def test_turns_that_came_back_are_in_view_again() -> None:
    session, store = await with_commands(6)
    await ask(session, "/compact 1")
    async with desk(store, session) as client:
        assert [*(await views(client)).values()].count("dropped") == 5
        await ask(session, "/expand")
        assert [*(await views(client)).values()].count("dropped") == 0
        trims = (await client.get("/api/sessions/s/trims"))["trims"]
        await ask(session, "one more")
        whole, pages = await whole_and_paged(client)
    first, second = trims
    assert (first["type"], first["reason"], first["turn"]) == ("history_trimmed", "trimmed by the user", 7)
    assert first["dropped"] == [{"first": 1, "last": 5}]
    assert (second["type"], second["restored_turns"]) == ("history_expanded", 5)
    assert [one["kept_turns"] for one in whole if one["call"] == 1] == [1, 2, 3, 4, 5, 6, 7]
    assert whole == pages
    assert as_last_meter(session, whole[-1])


async def test_after_a_clear_nothing_before_it_is_in_view() -> None:
    session, store = await with_commands(3)
    await ask(session, "/clear")
    await ask(session, "anew")
    async with desk(store, session) as client:
        found = await views(client)
        whole, pages = await whole_and_paged(client)
    assert found == {1: "dropped", 2: "dropped", 3: "dropped", 4: "never_sent", 5: "sent"}
    assert [one["kept_turns"] for one in whole if one["call"] == 1] == [1, 2, 3, 1]
    assert whole == pages


async def test_an_index_forgets_nothing_when_it_is_read_on() -> None:
    session, store = await talked(3)
    index = TurnIndex("s")
    await index.refresh(store)
    for number in range(4):
        await ask(session, f"more {number}")
        await index.refresh(store)
    anew = TurnIndex("s")
    await anew.refresh(store)
    assert (index.records, index.prompts, index.notices, index.cuts) == (
        anew.records,
        anew.prompts,
        anew.notices,
        anew.cuts,
    )
    kept = session.conversation.keeper.history.turns
    assert [await index.number(store, turn.turn_id) for turn in kept] == [3, 4, 5, 6, 7]
