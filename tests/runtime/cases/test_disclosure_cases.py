"""Cases about what client and model are told, by their ids, through a session.

Where the product does otherwise than a case wishes, the docstring says what and why.
"""

import logging

from runtime.conversation.load_and_fork import replay
from runtime.history.rows.notice import BREADCRUMB_TEXT
from runtime.values.events import HistoryTrimmed, ToolCallStarted, UsageChanged, UserMessage
from runtime.values.profiles import Profile
from tests.runtime.cases.harness import play, prompts, tokens, turns


async def test_b040_trimming_switched_off_is_overruled_only_by_the_window_and_says_so():
    case = await play("B040", window=16_000, profile=Profile(max_context_tokens=0))
    assert await case.ask(prompts("B040")[0]) == "end_turn"
    trims = case.client.trims()
    kept = case.session.conversation.keeper.history.turn_count
    assert sum(trim.dropped_turns for trim in trims) == 41 - kept > 0
    assert all("max_context_tokens = 0" in trim.note for trim in trims)
    assert all("16000" in trim.note for trim in trims)
    assert case.rows[1].content == BREADCRUMB_TEXT


async def test_b040_what_fits_the_window_stays():
    case = await play("B040", window=200_000, profile=Profile(max_context_tokens=0))
    assert await case.ask(prompts("B040")[0]) == "end_turn"
    assert case.client.trims() == []
    assert len(case.rows) == 1 + 2 * 40 + 1


async def test_b042_the_person_sees_everything_again_and_where_the_cut_is():
    profile = Profile(max_history_messages=3)
    live = await play("B042", profile=profile)
    assert await live.ask(prompts("B042")[0]) == "end_turn"
    again = await play("B042", profile=profile, store=live.store)
    assert again.client.trims() == []
    await replay(again.session.conversation)
    seen = [event for event in again.client.events if isinstance(event, UserMessage)]
    calls = [event for event in again.client.events if isinstance(event, ToolCallStarted)]
    assert (len(seen), len(calls)) == (11, 10)
    assert [event.restored_dropped_turns for event in seen] == [0] * 8 + [8, 0, 0]
    kept = [row for row in live.rows if row.role == "user" and row.content != BREADCRUMB_TEXT]
    assert [row.content for row in kept] == [event.block["text"] for event in seen[-3:]]


async def test_b044_collapse_is_a_matter_of_turns_and_is_logged(caplog):
    """Collapsing changes one request, never the history: it is logged, not announced as a trim."""
    case = await play("B044", window=1_000_000, profile=Profile(max_context_tokens=1_000_000))
    with caplog.at_level(logging.INFO, logger="wholeturn.history"):
        assert await case.ask(prompts("B044")[0]) == "end_turn"
    assert [record.getMessage() for record in caplog.records] == [
        "the tool traffic of 28 older turns is collapsed in the request"
    ]
    assert case.client.trims() == []
    assert case.session.conversation.keeper.history.turn_count == 31
    first = turns("B044")[0]
    assert case.rows[1:3] == [first[0], first[-1]]
    assert sum(row.role == "tool" for row in case.rows) == 2 * 2


async def test_b048_the_meter_moves_with_load_and_trim():
    case = await play("B048", profile=Profile(max_history_messages=2))
    await case.session.conversation.keeper.show_usage()
    loaded = case.usage()[-1].used
    assert loaded < sum(tokens_of(rows) for rows in turns("B048")[-3:])
    assert await case.ask(prompts("B048")[0]) == "end_turn"
    kinds = [type(event) for event in case.client.events]
    assert kinds.index(UsageChanged, len(kinds) - kinds[::-1].index(HistoryTrimmed)) > 0
    trimmed = case.client.trims()[-1]
    assert trimmed.used == tokens(case.requests[-1]) < loaded
    assert case.usage()[-1].used == 2510


async def test_b052_the_limit_is_the_one_that_was_set():
    case = await play("B052", window=131_072)
    assert await case.ask(prompts("B052")[0]) == "end_turn"
    assert [(event.used, event.size, event.size_is_budget) for event in case.usage()] == [
        (910, 131_072, False)
    ]
    composed = case.session.conversation.keeper.composed
    assert composed is not None
    assert composed.budget.window_source == "configured"


def tokens_of(rows):
    """The estimate of some rows."""
    return sum(-(-len(row.content) // 4) + 4 for row in rows)
