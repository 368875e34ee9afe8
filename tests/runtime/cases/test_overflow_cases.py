"""Cases in which the provider says that it is too much, by their ids, through a session.

Where the product does otherwise than a case wishes, the docstring says what and why.
"""

import pytest

from runtime.history.rows.estimate import estimate_history_tokens
from runtime.history.rows.notice import BREADCRUMB_TEXT
from runtime.values.errors import ContextWindowExceeded
from runtime.values.profiles import Profile
from tests.runtime.cases.harness import fixed_tool, play, prompts, tokens, turns

OVERFLOW = "context window overflow recovery"
WHOLE = Profile(max_context_tokens=1_000_000)
"""No budget in the way: only the window, if one is known, limits a request."""


async def test_b025_no_retry_that_is_not_smaller():
    """Taking out `hi` saves less than the breadcrumb costs, so there is nothing smaller to send."""
    case = await play("B025")
    with pytest.raises(ContextWindowExceeded) as raised:
        await case.ask(prompts("B025")[0])
    assert len(case.requests) == 1
    assert case.client.trims() == []
    assert str(raised.value) in case.client.text()
    assert str(raised.value.estimated_tokens) in str(raised.value)
    assert "not stated" in str(raised.value)


async def test_b027_a_floor_above_the_window_is_not_tried_twice():
    case = await play("B027", profile=Profile(max_context_tokens=8000))
    for text in prompts("B027"):
        with pytest.raises(ContextWindowExceeded) as raised:
            await case.ask(text)
    assert len(case.requests) == 1
    assert raised.value.model_context_window == 8192
    assert [notice.title for notice in case.notices()][:1] == [
        "System prompt and tools fill the context budget"
    ]
    assert case.client.trims() == []


async def test_b028_one_place_shortens_and_says_so():
    case = await play("B028", profile=WHOLE)
    assert await case.ask(prompts("B028")[0]) == "end_turn"
    assert len(case.requests) == 2
    (trim,) = case.client.trims()
    assert trim.reason == OVERFLOW
    assert trim.dropped_turns + trim.kept_turns == 13
    assert tokens(case.requests[1]) <= 8192
    assert case.rows[1].content == BREADCRUMB_TEXT


async def test_b031_a_limit_per_minute_that_the_request_exceeds_is_a_size():
    case = await play("B031", profile=WHOLE)
    assert await case.ask(prompts("B031")[0]) == "end_turn"
    first, second = map(tokens, case.requests)
    assert second < first
    assert second <= 30_000
    (trim,) = case.client.trims()
    assert trim.dropped_turns > 0


async def test_b033_a_known_window_costs_as_few_turns_as_it_must():
    """The window is known here, so the request is cut before anything is refused."""
    case = await play("B033", {"text": "ok"}, window=100_000, profile=WHOLE)
    assert await case.ask(prompts("B033")[0]) == "end_turn"
    assert sum(trim.dropped_turns for trim in case.client.trims()) in range(2, 7)
    assert {trim.reason for trim in case.client.trims()} == {"context token budget exceeded"}
    assert len(case.requests) == 1
    assert 100_000 - 4096 - 2 * turn_tokens("B033") < tokens(case.requests[0]) <= 100_000 - 4096


async def test_b033_an_unknown_window_is_left_by_a_third():
    """A refused request shrinks to two thirds, or to the stated limit if that is smaller, by rule."""
    case = await play("B033", profile=WHOLE)
    assert await case.ask(prompts("B033")[0]) == "end_turn"
    first, second = map(tokens, case.requests)
    assert first * 2 // 3 - turn_tokens("B033") < second <= first * 2 // 3
    (trim,) = case.client.trims()
    assert (trim.reason, trim.dropped_turns) == (OVERFLOW, 14)
    assert case.usage()[-1].size == 100_000


async def test_b035_a_prompt_too_large_is_refused_and_not_kept():
    case = await play("B035", {"text": "ok"}, window=16_000)
    large, small = prompts("B035")
    with pytest.raises(ContextWindowExceeded) as raised:
        await case.ask(large)
    assert (case.requests, raised.value.model_context_window) == ([], 16_000)
    assert raised.value.estimated_tokens > 30_000
    assert await case.ask(small) == "end_turn"
    assert [row.content for row in case.rows[1:]] == ["old", "ok", small]
    assert case.client.trims() == []


async def test_b035_the_same_when_only_the_provider_knows_its_window():
    case = await play("B035", profile=WHOLE)
    large, small = prompts("B035")
    with pytest.raises(ContextWindowExceeded):
        await case.ask(large)
    sizes = list(map(tokens, case.requests))
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == len(sizes)
    case.serve({"text": "ok"})
    assert await case.ask(small) == "end_turn"
    assert large not in [row.content for row in case.rows]


async def test_b037_the_limit_in_the_message_is_believed_from_then_on():
    case = await play("B037", profile=WHOLE)
    assert await case.ask(prompts("B037")[0]) == "end_turn"
    assert len(case.requests) == 2
    assert tokens(case.requests[1]) <= 72_000
    assert case.usage()[-1].size == 72_000
    assert not case.usage()[-1].size_is_budget


async def test_b037_a_configured_window_stays_what_the_person_set():
    """What was configured comes before what was learned; the request shrinks all the same."""
    case = await play("B037", window=200_000, profile=WHOLE)
    assert await case.ask(prompts("B037")[0]) == "end_turn"
    assert len(case.requests) == 2
    assert tokens(case.requests[1]) <= 72_000
    assert case.usage()[-1].size == 200_000


async def test_b038_a_running_turn_is_checked_before_every_request():
    profile = Profile(max_tool_iterations=60, running_turn_overflow="shorten")
    case = await play("B038", window=16_000, profile=profile, tools=[fixed_tool("read_file", "x" * 3000)])
    assert await case.ask(prompts("B038")[0]) == "end_turn"
    assert len(case.requests) == 31
    assert max(map(tokens, case.requests)) <= 16_000
    assert all(request.rows()[1].content == prompts("B038")[0] for request in case.requests)
    assert any(row.content.startswith("[result shortened to fit:") for row in case.rows)
    assert {trim.reason for trim in case.client.trims()} == {"running turn shortened to fit"}
    assert case.rows[-1].content == "x" * 3000


async def test_b039_only_the_room_for_the_answer_shrinks():
    case = await play("B039", window=None, max_output=64_000)
    first, second = prompts("B039")
    assert await case.ask(first) == "end_turn"
    assert [request.max_output_tokens for request in case.requests] == [64_000, 62_900]
    assert tokens(case.requests[0]) == tokens(case.requests[1])
    case.session.cancel()
    case.serve({"text": "ok"})
    assert await case.ask(second) == "end_turn"
    assert case.client.trims() == []


async def test_b039_with_the_window_known_nothing_is_refused():
    """The answer's room is what the messages leave, although the whole window was configured for it."""
    case = await play("B039", {"text": "ok", "repeat": True}, window=64_000, max_output=64_000)
    for text in prompts("B039"):
        assert await case.ask(text) == "end_turn"
        room = case.requests[-1].max_output_tokens
        assert room == 64_000 - tokens(case.requests[-1])
    assert case.client.trims() == []


def turn_tokens(case_id: str) -> int:
    """What one turn of a generated history costs."""
    return estimate_history_tokens(turns(case_id)[0])
