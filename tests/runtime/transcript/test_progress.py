"""A turn told from its entries alone: the same words, calls and trims that its own client saw."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from runtime.session.session import Session
from runtime.transcript.progress import TurnProgress, trim_event
from runtime.transcript.turn_record import PAGE
from runtime.trimming.catalog import trimmer_of
from runtime.values.errors import ProviderError
from runtime.values.events import (
    AgentText,
    AgentThought,
    Event,
    HistoryTrimmed,
    PlanChanged,
    PlanEntry,
    ToolCallChanged,
    ToolCallStarted,
    UserMessage,
)
from runtime.values.profiles import LoopContext, Profile
from runtime.values.stored import Store, StoredEntry
from schemas.transcript import ContextStep, PartialStep, PromptStep, ReplyStep, Step, ToolStep, TrimStep
from tests.support.fakes import EchoTool, RecordingClient, ask, call, make_session, script


def words(events: Sequence[Event]) -> list[tuple[type, str, str]]:
    """All messages, each in one piece, in order of their beginning."""
    found: dict[tuple[type, str], str] = {}
    for event in events:
        if isinstance(event, AgentText | AgentThought) and event.text:
            key = type(event), event.message_id
            found[key] = found.get(key, "") + event.text
    return [(kind, ident, text) for (kind, ident), text in found.items()]


def calls(events: Sequence[Event]) -> dict[str, tuple[str, str, str | None]]:
    """Title, status and content of each call at the end."""
    found: dict[str, tuple[str, str, str | None]] = {}
    for event in events:
        match event:
            case ToolCallStarted():
                assert event.call_id not in found
                found[event.call_id] = (event.title, event.status, event.content)
            case ToolCallChanged():
                title, _, content = found[event.call_id]
                kept = content if event.content is None else event.content
                found[event.call_id] = (title, event.status, kept)
            case _:
                pass
    return found


def trims(events: Sequence[Event]) -> list[HistoryTrimmed]:
    """All trims without the client's meter, which is not recorded."""
    found = (event for event in events if isinstance(event, HistoryTrimmed))
    return [replace(event, used=0, size=0, size_is_budget=False) for event in found]


async def told(store: Store) -> list[Event]:
    """Everything in the store of the session `s`, as one who follows tells it."""
    found: list[Event] = []
    turn = TurnProgress("")
    after = 0
    while page := await store.entries("s", after=after, limit=PAGE):
        for entry in page:
            if entry.turn_id != turn.turn_id:
                turn = TurnProgress(entry.turn_id)
            found += turn.add(entry)
        after = page[-1].seq
    return found


async def same(session: Session, client: RecordingClient, store: Store, *prompts: str) -> list[Event]:
    """Run these prompts and compare; gives what was told."""
    for text in prompts:
        await ask(session, text)
    found = await told(store)
    assert words(found) == words(client.events)
    assert calls(found) == calls(client.events)
    assert trims(found) == trims(client.events)
    asked = [event.block["text"] for event in found if isinstance(event, UserMessage)]
    assert asked == list(prompts)
    return found


async def test_text_thought_and_calls() -> None:
    provider = script(
        {"thought": "hm", "text": ["Let me ", "look."], "calls": [call("one"), call("fail")]},
        {"text": "Done."},
        {"text": "Again."},
    )
    found = await same(*await make_session(provider, tools=[EchoTool()]), "first", "second")
    assert [status for _, status, _ in calls(found).values()] == ["completed", "failed"]


async def test_a_trim_has_the_numbers_that_the_client_was_told() -> None:
    provider = script(loop=True, echo="{last}")
    made = await make_session(provider, profile=Profile(max_history_messages=2))
    found = trims(await same(*made, *"abcdef"))
    assert [trim.dropped_turns for trim in found] == [1, 1, 1, 1]


async def test_a_trim_by_tokens() -> None:
    provider = script(loop=True, echo="{last}")
    made = await make_session(provider, profile=Profile(max_context_tokens=600))
    found = trims(await same(*made, *("word " * 100 for _ in range(8))))
    assert found
    assert all(trim.tokens for trim in found)


async def test_a_folded_loop() -> None:
    provider = script({"calls": [call("x")], "repeat": 8}, {"text": "done"})
    session, client, store = await make_session(provider, tools=[EchoTool()])
    keeper = session.conversation.keeper
    keeper.use(replace(keeper.setup, trimmer=trimmer_of(LoopContext("count", 3), 0.0, None)))
    found = trims(await same(session, client, store, "loop"))
    assert {(trim.reason, trim.kept_turns) for trim in found} == {("loop context trimmed", 1)}


async def test_an_answer_without_a_model_and_an_error() -> None:
    provider = script({"error": {"kind": "bad_request", "message": "no"}})
    session, client, store = await make_session(provider)
    assert await ask(session, "/local")
    with pytest.raises(ProviderError):
        await ask(session, "fails")
    assert words(await told(store)) == words(client.events)


async def test_a_cancelled_turn(autojump_clock: trio.testing.MockClock) -> None:
    provider = script({"text": ["Some ", "text"], "hang": True})
    session, client, store = await make_session(provider)
    with trio.move_on_after(3):
        await ask(session, "begin")
    assert words(await told(store)) == words(client.events) != []


async def test_calls_in_the_text_of_the_model() -> None:
    text = 'I look. <tool_call>{"name": "echo", "arguments": {"text": "x"}}</tool_call>'
    provider = script({"text": [text[:9], text[9:30], text[30:]]}, {"text": "done"})
    made = await make_session(provider, tools=[EchoTool()], prompt_tools=True)
    found = await same(*made, "go")
    assert len(calls(found)) == 1


def entry(key: str, step: Step) -> StoredEntry:
    kind = str(getattr(step, "kind", ""))
    return StoredEntry("t", key, kind, step.model_dump_json().encode(), 1)


def partial(number: int, text: str, **more: object) -> StoredEntry:
    step = PartialStep.model_validate({"iteration": 0, "message_id": "m", "text": text, **more})
    return entry(f"turn:t:iter:0:partial:{number}", step)


@given(st.text(max_size=60), st.lists(st.integers(0, 60), max_size=5))
def test_text_comes_in_pieces_that_join_to_the_reply(text: str, cuts: list[int]) -> None:
    turn, found, at = TurnProgress("t"), list[Event](), 0
    for number, cut in enumerate(sorted(cuts)):
        found += turn.add(partial(number, text[at:cut]))
        at = max(at, min(cut, len(text)))
    found += turn.add(entry("turn:t:iter:0", ReplyStep(iteration=0, message_id="m", text=text)))
    assert "".join(event.text for event in found if isinstance(event, AgentText)) == text


def test_a_reply_in_the_place_of_a_broken_draft_is_told_whole() -> None:
    turn = TurnProgress("t")
    assert turn.add(partial(1, "one thing")) == [AgentText("m", "one thing")]
    reply = ReplyStep(iteration=0, message_id="m", text="another")
    assert turn.add(entry("turn:t:iter:0", reply)) == [AgentText("m", "another")]


def test_half_a_text_with_calls_in_it_waits_for_the_rest() -> None:
    assert TurnProgress("t").add(partial(1, "<tool_c", prompt_mode=True)) == []


def test_a_plan_is_told_with_the_call_that_set_it() -> None:
    turn = TurnProgress("t")
    plan = {"entries": [{"content": "look", "priority": "high", "status": "pending"}]}
    turn.add(entry("turn:t:prompt", PromptStep(message_id="p", text="go", blocks=())))
    record = {"call_id": "c", "id": "1", "name": "update_plan", "arguments": "{}"}
    reply = ReplyStep.model_validate({"iteration": 0, "message_id": "m", "text": "", "calls": [record]})
    assert turn.add(entry("turn:t:iter:0", reply)) == []
    facts = {"iteration": 0, "call_id": "c", "status": "completed", "text": "", "raw_input": plan}
    data = entry("turn:t:iter:0:tool:c", ToolStep.model_validate(facts))
    started, changed = turn.add(data)
    assert isinstance(started, ToolCallStarted)
    assert changed == PlanChanged((PlanEntry("look", "high"),))
    assert turn.add(data) == []


def test_what_a_later_version_wrote_is_passed_over() -> None:
    turn = TurnProgress("t")
    assert turn.add(StoredEntry("t", "turn:t:new", "novelty", b'{"kind":"novelty"}', 1)) == []
    assert turn.add(StoredEntry("t", "turn:t:iter:0", "reply", b"no json", 2)) == []
    assert turn.add(StoredEntry("t", "turn:t:iter:0:trim:1", "trim", b"no json", 3)) == []


def test_an_older_trim_tells_what_its_figures_are_from() -> None:
    base = {"trim_id": "x", "dropped_messages": 1, "dropped_turns": 1, "kept_turns": 1}
    figures = {"reason": "r", "strategy": "recent", "token_budget": 9, "tokens_before": 10, "tokens_after": 8}
    for calibration, source in ((1.0, "estimate"), (1.3, "calibrated")):
        step = TrimStep.model_validate({**base, **figures, "calibration": calibration})
        tokens = trim_event(step).tokens
        assert tokens is not None
        assert (tokens.before_source, tokens.after_source) == (source, source)


def test_a_pass_that_nobody_was_told_of_is_not_told() -> None:
    step = ContextStep(iteration=1, strategy="count", rounds=3)
    assert TurnProgress("t").add(entry("turn:t:iter:1:context", step)) == []
