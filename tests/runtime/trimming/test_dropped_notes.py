"""Notes that stand for dropped turns: one text, checked, never in the way when it fails."""

import pytest

from runtime.history.live.preamble import NOTES_HEADER, SUPERSEDED
from runtime.history.rows.boundaries import BREADCRUMB_TEXT
from runtime.setup.session_setup import LEFT_OUT, checked_quotes
from runtime.values.events import HistoryTrimmed
from runtime.values.prompt import Prompt
from schemas.transcript import TrimStep
from tests.runtime.trimming.goal_rigs import replayed, sent, stored_steps, talk
from tests.support.fakes import script


async def test_one_summary_stands_for_all_that_was_dropped():
    small = script({"text": "they asked a"}, {"text": "they asked a and b", "repeat": True})
    one = await talk(small=small, dropped_turns="summarize", retention="recent")
    for text in "abcdefghij":
        await one.say(text)
    notes = [row.content for row in one.requests[-1].rows() if row.content.startswith(NOTES_HEADER)]
    assert notes == [f"{NOTES_HEADER}\nthey asked a and b"]
    assert [row.content for row in one.requests[-1].rows()[1:3]] == [BREADCRUMB_TEXT, notes[0]]
    assert "they asked a" in small.requests[1].rows()[1].content
    first, *_ = one.client.trims()
    assert first.summary == f"{NOTES_HEADER}\nthey asked a"
    for request in one.requests:
        assert sum(row.content.startswith(NOTES_HEADER) for row in request.rows()) <= 1
    used = len(small.requests)
    assert list(map(sent, await replayed(one.store))) == list(map(sent, one.requests))
    assert len(small.requests) == used
    steps = await stored_steps(one.store, TrimStep)
    assert all(step.summary and step.used.route == "scripted/small" for step in steps)


async def test_the_request_with_notes_fits_like_any_other():
    small = script({"text": "n" * 9000, "repeat": True})
    one = await talk(small=small, dropped_turns="summarize")
    for text in "abcdefghijk":
        await one.say(text)
    sizes = [trim.tokens for trim in one.client.trims() if trim.tokens is not None]
    assert sizes
    assert all(tokens.after <= tokens.budget for tokens in sizes)
    assert one.keeper.composed.estimated_tokens <= 2200
    assert list(map(sent, await replayed(one.store))) == list(map(sent, one.requests))


async def test_notes_come_back_after_a_restart():
    small = script({"text": "they asked a", "repeat": True})
    one = await talk(small=small, dropped_turns="summarize")
    for text in "abcdefg":
        await one.say(text)
    again = await talk(store=one.store, small=small, dropped_turns="summarize", max_context_tokens=15_000)
    await again.say("h")
    assert again.requests[-1].rows()[2].content == f"{NOTES_HEADER}\nthey asked a"


async def test_notes_say_when_requests_in_them_were_superseded():
    small = script({"text": "they asked a", "repeat": True})
    one = await talk(small=small, dropped_turns="summarize")
    for text in ("a", "b", "/goal c", *"defg"):
        await one.say(text)
    notes = [row.content for row in one.requests[-1].rows() if row.content.startswith(NOTES_HEADER)]
    assert notes == [f"{NOTES_HEADER}\n{SUPERSEDED}\nthey asked a"]


DOWN = {"error": {"status": 500, "message": "down"}}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (DOWN, "The summary failed"),
        ({"text": " "}, "was empty"),
        ({"hang": True, "text": "mm"}, "longer than 60 s"),
        (None, "no model"),
    ],
)
async def test_without_a_summary_turns_are_left_out_plainly_and_the_client_is_told(
    answer, why, autojump_clock
):
    small = None if answer is None else script({**answer, "repeat": True})
    noting = await talk(small=small, dropped_turns="summarize")
    for text in "abcdefg":
        await noting.say(text)
    assert all(why in trim.note and not trim.summary for trim in noting.client.trims())
    assert noting.client.trims()
    assert not any(row.content.startswith(NOTES_HEADER) for row in noting.requests[-1].rows())
    assert list(map(sent, await replayed(noting.store))) == list(map(sent, noting.requests))


async def test_a_summary_that_saves_nothing_is_left_out():
    small = script({"text": "long " * 400, "repeat": True})
    one = await talk(
        {"text": "ok", "repeat": True},
        small=small,
        dropped_turns="summarize",
        max_history_messages=1,
        max_context_tokens=12_000,
        retention="recent",
    )
    await one.session.run(one.session.submit(Prompt("hi", ())))
    await one.session.run(one.session.submit(Prompt("hi again", ())))
    (trim,) = one.client.trims()
    assert "not smaller" in trim.note
    assert isinstance(trim, HistoryTrimmed)


async def test_an_overflow_is_summarised_too():
    overflow = {
        "error": {"status": 400, "code": "context_length_exceeded", "message": "5000 tokens > 900 maximum"}
    }
    small = script({"text": "they asked a", "repeat": True})
    one = await talk(
        *[{"text": "ok"}] * 3,
        overflow,
        {"text": "ok"},
        small=small,
        dropped_turns="summarize",
        max_context_tokens=15_000,
        retention="recent",
    )
    for text in "abcd":
        await one.say(text)
    assert one.requests[-1].rows()[2].content == f"{NOTES_HEADER}\nthey asked a"
    assert list(map(sent, await replayed(one.store))) == list(map(sent, one.requests))


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ('They said "find all of it".', f"They said {LEFT_OUT}."),
        ('They said "Find   THE bug." twice', 'They said "Find   THE bug." twice'),
        ("“find the bug” and «find the mouse»", f"“find the bug” and {LEFT_OUT}"),
        ('a "short" word', 'a "short" word'),
    ],
)
def test_a_quote_that_nobody_said_is_left_out(said, kept):
    assert checked_quotes(said, "user: please find the bug.") == kept
