"""Cases about what stands for dropped turns, by their ids, through a session.

Where the product does otherwise than a case wishes, the docstring says what and why.
"""

from dataclasses import replace

import trio

from runtime.history.live.preamble import NOTES_HEADER
from runtime.history.rows.boundaries import BREADCRUMB_TEXT
from runtime.providers.scripted.provider import ScriptedProvider
from runtime.setup.session_setup import Summariser
from runtime.store.memory import MemoryStore
from runtime.values.profiles import Profile, Route
from runtime.values.rows import Row
from runtime.values.stored import SessionRecord
from tests.runtime.cases.harness import Played, fixed_tool, given, play, reply, turns, write_turns
from tests.runtime.history.case_data import cases
from tests.support.fakes import TIME, script


async def summarising(case_id: str, longer: int = 0) -> tuple[Played, ScriptedProvider]:
    """The case with its finished turns in the session, and the provider that writes its notes."""
    source = cases()[case_id]["input"]
    answers = source["provider"]
    small = script(*(scripted(one) for one in answers if one.get("to") == "summariser"))
    main = [reply(one) for one in answers if "to" not in one]
    profile = Profile(max_history_messages=source["config"]["max_turns"], dropped_turns="summarize")
    case = await play(case_id, *main, store=await finished(case_id, longer))

    async def get() -> ScriptedProvider:
        await trio.lowlevel.checkpoint()
        return small

    keeper = case.session.conversation.keeper
    summarise = Summariser(get, Route("scripted", "small"))
    keeper.use(replace(keeper.setup, profile=profile, summarise=summarise))
    return case, small


def scripted(one) -> dict[str, object]:
    """A reply of the case; an error body may be a text alone."""
    if one["status"] != 200:
        return {"error": {"status": one["status"], "message": str(one["body"]["error"])}}
    return reply(one)


async def asked(case_id: str) -> tuple[Played, ScriptedProvider, str]:
    """The case's last prompt sent, with the turns before it in the session."""
    case, small = await summarising(case_id)
    text = turns(case_id)[-1][0].content
    assert await case.ask(text) == "end_turn"
    return case, small, text


async def finished(case_id: str, longer: int = 0) -> MemoryStore:
    """The turns of a case but for the last one, which is only a prompt and is still to be asked.

    longer: characters that each row has at least.
    """
    store = MemoryStore()
    await store.create_session(SessionRecord("s", "/project", TIME, TIME))
    padded = [
        [replace(row, content=row.content.ljust(longer)) for row in turn] for turn in turns(case_id)[:-1]
    ]
    await write_turns(store, padded)
    return store


def user_rows(case: Played) -> list[Row]:
    return [row for row in case.rows if row.role == "user"]


async def test_b053_the_newest_prompt_is_last_and_nothing_old_is_asked_again():
    case = await play(
        "B053",
        {"text": "Collected."},
        profile=Profile(max_history_messages=2),
        tools=[fixed_tool("ask_reviewer", "pending")],
        store=await finished("B053"),
    )
    assert await case.ask(given("B053")[-1]["text"]) == "end_turn"
    texts = [row.content for row in user_rows(case)]
    assert texts == [BREADCRUMB_TEXT, "Now ask the reviewer about the schema.", "Collect the answer."]
    assert "Send a test ping" not in str(case.rows)


async def test_b054_notes_are_no_instructions_and_the_newest_prompt_comes_after_them():
    case, _, text = await asked("B054")
    last = user_rows(case)[-1]
    (notes,) = [row for row in user_rows(case) if "PENDING" in row.content]
    assert last.content == text == "Show me the plan again."
    assert notes.content.startswith(f"{NOTES_HEADER}\n")
    assert case.rows.index(notes) < case.rows.index(last)


async def test_b055_what_nobody_said_is_not_quoted():
    """Without the quote the notes are longer than the turn, so they are left out as well."""
    case, small, text = await asked("B055")
    assert len(small.requests) == 1
    assert "until nothing is left" not in str(case.rows)
    assert [row.content for row in user_rows(case)] == [BREADCRUMB_TEXT, text]
    (trim,) = case.client.trims()
    assert "not smaller" in trim.note


async def test_b055_notes_about_a_longer_turn_are_there_without_the_quote():
    """Breadcrumb and notes are user rows by rule; both say in their first line that they are ours."""
    case, _ = await summarising("B055", longer=2000)
    await case.ask("Thanks. Which is cheaper?")
    notes = user_rows(case)[1].content
    assert notes.startswith(f"{NOTES_HEADER}\nAll user messages: [a quote")
    assert "until nothing is left" not in str(case.rows)


async def test_b056_without_a_summary_the_plain_way_is_used_and_told():
    """No count and no quote stand in the breadcrumb: it is one fixed line, and nothing is invented."""
    case, small, text = await asked("B056")
    assert len(small.requests) == 1
    assert [row.content for row in user_rows(case)] == [BREADCRUMB_TEXT, text]
    (trim,) = case.client.trims()
    assert "No summary of them was made. The summary failed" in trim.note
    assert (trim.dropped_turns, trim.summary) == (1, "")
