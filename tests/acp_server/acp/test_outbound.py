"""Every event as it goes out: valid by the official schema, gated, without nulls, bounded."""

import json
from typing import get_args

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from acp_server.acp.client_options import WireOptions
from acp_server.acp.size_limits import TEXT_LIMIT, bounded_object, cut, encoded_size, fits, split
from acp_server.acp.updates import updates
from runtime.values.events import (
    AgentText,
    AgentThought,
    CommandsAvailable,
    Event,
    FileDiff,
    HistoryTrimmed,
    Location,
    ModeChanged,
    Noticed,
    OptionsChanged,
    PlanChanged,
    PlanEntry,
    TitleChanged,
    ToolCallChanged,
    ToolCallStarted,
    TrimTokens,
    UsageChanged,
    UserMessage,
)
from runtime.values.model import Cost
from runtime.values.profiles import Offer, Value
from tests.support.acp_samples import values_of
from tests.support.acp_schema import GATED, Edition, check_params, update_kind

TEN_MIB = 10 * 1024 * 1024
TRIM = HistoryTrimmed(12, 4, 3, "context token budget exceeded", "token-budget", "t-7", used=4821, size=9000)
TRIM_BY_COUNT = HistoryTrimmed(1, 1, 1, "history turn limit exceeded", "count", "t-8")
TOOL = ToolCallStarted(
    "c1", "read_file", "Read a", "read", {"path": "/a", "limit": None}, (Location("/a", 3), Location("/b"))
)
EVENTS: list[Event] = [
    UserMessage("m1", {"type": "text", "text": "hi", "annotations": None}),
    UserMessage("m1", {"type": "resource_link", "uri": "file:///a", "name": "a"}, restored_dropped_turns=4),
    AgentText("m2", "Hello 🎉\n"),
    AgentText("m2", ""),
    AgentThought("m3", "hm"),
    TOOL,
    ToolCallStarted("c1", "x", "", "other", {}, status="completed", content="done"),
    ToolCallChanged("c1", "in_progress"),
    ToolCallChanged("c1", "failed", "no"),
    ToolCallChanged("c1", "completed", ""),
    ToolCallChanged("c1", "in_progress", "", terminal_id="t1"),
    ToolCallChanged("c1", "completed", "Edited.", (FileDiff("/a", "x", "y"), FileDiff("/b", None, ""))),
    ToolCallStarted("c1", "x", "", "edit", {}, status="completed", diffs=(FileDiff("/a", None, "y"),)),
    PlanChanged((PlanEntry("look", "high", "completed"), PlanEntry("mend"))),
    PlanChanged(()),
    UsageChanged(0, 8000),
    UsageChanged(100, 8000, size_is_budget=True),
    UsageChanged(100, 8000, cost=Cost(0.125, "EUR")),
    ModeChanged("plan"),
    OptionsChanged((Offer("model", "Model", "model", "m", "a", (Value("a", "A", "x"), Value("b", "B"))),)),
    TRIM,
    TRIM_BY_COUNT,
    HistoryTrimmed(5, 2, 3, "r", "recent", "t-9", TrimTokens(100, 200, 90), note="A setting was overruled."),
    TitleChanged("A title", "2026-01-02T03:04:05Z"),
    TitleChanged(None, "2026-01-02T03:04:05Z"),
    CommandsAvailable((("trim", "Trim now", "turns"), ("help", "Help", None))),
    CommandsAvailable(()),
    Noticed("warning", "Careful", "really"),
    Noticed("info", "By the way"),
]
OPTIONS = [
    WireOptions(form, visible, notices, compaction)
    for form in ("update", "extension", None)
    for visible in (True, False)
    for notices in (True, False)
    for compaction in (True, False)
]

EDITIONS: tuple[Edition, ...] = ("schema-v1", "schema-v1-unstable")


def bodies(event: Event, options: WireOptions | None = None) -> list[dict[str, object]]:
    frames = updates("S", event, options or WireOptions())
    assert all(method == "session/update" and params["sessionId"] == "S" for method, params in frames)
    found = [params["update"] for _, params in frames]
    return [body for body in found if isinstance(body, dict)]


def body(event: Event, options: WireOptions | None = None) -> dict[str, object]:
    (only,) = bodies(event, options)
    return only


def text_of(chunk: dict[str, object]) -> str:
    content = chunk["content"]
    assert isinstance(content, dict)
    text = content["text"]
    assert isinstance(text, str)
    return text


def nulls_in(value: object, *, key: str = "") -> bool:
    """Nulls anywhere but in a tool's own arguments."""
    if isinstance(value, dict):
        return any(nulls_in(item, key=name) for name, item in value.items() if name != "rawInput")
    return any(map(nulls_in, value)) if isinstance(value, list) else value is None


# ---------------------------------------------------------------- all kinds


def test_the_examples_have_every_kind_of_event():
    assert {type(event) for event in EVENTS} == set(get_args(Event))


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_every_message_is_valid_gated_and_without_nulls(event):
    for options in OPTIONS:
        assert updates("S", event, options)
        check_all(event, options)


def check_all(event: Event, options: WireOptions) -> None:
    for method, params in updates("S", event, options):
        wire = json.loads(orjson.dumps(params))
        for edition in EDITIONS:
            check_params(method, wire, edition=edition, trim_exception=options.trim_form == "update")
        assert not nulls_in(wire)
        assert "_meta" not in params
        gate = GATED.get(update_kind(method, wire) or "")
        assert gate is None or getattr(options, gate)


def test_text_is_a_chunk_with_its_message_id():
    content = {"type": "text", "text": "hi"}
    for event, kind in (
        (AgentText("m", "hi"), "agent_message_chunk"),
        (AgentThought("m", "hi"), "agent_thought_chunk"),
        (UserMessage("m", content), "user_message_chunk"),
    ):
        assert body(event) == {"sessionUpdate": kind, "content": content, "messageId": "m"}


def test_a_tool_call_names_everything_it_knows():
    assert body(TOOL) == {
        "sessionUpdate": "tool_call",
        "toolCallId": "c1",
        "title": "Read a",
        "name": "read_file",
        "kind": "read",
        "status": "pending",
        "rawInput": {"path": "/a", "limit": None},
        "locations": [{"path": "/a", "line": 3}, {"path": "/b"}],
    }


@pytest.mark.parametrize(("content", "shown"), [(None, None), ("", []), ("x", ["x"])])
def test_content_replaces_and_none_keeps(content, shown):
    changed = body(ToolCallChanged("c", "completed", content))
    expected = shown and [{"type": "content", "content": {"type": "text", "text": text}} for text in shown]
    assert changed.get("content") == (expected if shown is not None else None)
    assert ("content" in changed) is (content is not None)


def test_a_terminal_a_diff_and_a_text_side_by_side():
    diffs = (FileDiff("/a", "x", "y"), FileDiff("/b", None, "z"))
    assert body(ToolCallChanged("c", "completed", "done", diffs, "t"))["content"] == [
        {"type": "terminal", "terminalId": "t"},
        {"type": "diff", "path": "/a", "oldText": "x", "newText": "y"},
        {"type": "diff", "path": "/b", "newText": "z"},
        {"type": "content", "content": {"type": "text", "text": "done"}},
    ]


def test_a_diff_that_is_too_large_is_not_shown_by_halves():
    big, small = FileDiff("/a", "x", "y" * (TEXT_LIMIT + 1)), FileDiff("/b", "x", "y")
    long_path = FileDiff("/" + "a" * 5000, "x", "y")
    content = body(ToolCallChanged("c", "completed", "", (big, long_path, small, small)))["content"]
    assert content == [{"type": "diff", "path": "/b", "oldText": "x", "newText": "y"}]


def test_usage_says_when_its_size_is_only_the_budget():
    assert body(UsageChanged(5, 80)) == {"sessionUpdate": "usage_update", "used": 5, "size": 80}
    priced = body(UsageChanged(5, 80, cost=Cost(0.1 + 0.2, "USD")))
    assert priced["cost"] == {"amount": 0.3, "currency": "USD"}
    marked = body(UsageChanged(5, 80, size_is_budget=True))
    assert marked["_meta"] == {"wholeturn/usage": {"sizeIs": "budget"}}


def test_a_title_that_did_not_change_is_not_cleared():
    assert body(TitleChanged(None, "T")) == {"sessionUpdate": "session_info_update", "updatedAt": "T"}


def test_a_notice_is_said_aloud_where_the_client_takes_none():
    event = Noticed("error", "Store is full", "Nothing is kept.")
    assert body(event, WireOptions(notices=True)) == {
        "sessionUpdate": "notice",
        "severity": "error",
        "title": "Store is full",
        "description": "Nothing is kept.",
    }
    said = [body(event), body(event)]
    assert [chunk["sessionUpdate"] for chunk in said] == ["agent_thought_chunk"] * 2
    assert text_of(said[0]) == "Error: Store is full\nNothing is kept.\n\n"
    assert said[0]["messageId"] != said[1]["messageId"]


def test_a_replayed_turn_says_what_the_model_no_longer_knows():
    event = UserMessage("m", {"type": "text", "text": "x" * (5 * TEXT_LIMIT)}, restored_dropped_turns=4)
    first, *others = bodies(event)
    assert first["_meta"] == {"wholeturn/history_trimmed": {"droppedTurns": 4, "restored": True}}
    assert others
    assert all("_meta" not in other for other in others)


# ---------------------------------------------------------------- bounds

NASTY = st.text(st.sampled_from('a"\\\n\x00\x1f\x7fé€🎉\ud800\udfff\u2028'), max_size=60)


@given(NASTY, st.integers(6, 64))
@example("🎉" * 20, 6)
@example("\x00" * 7, 6)
@settings(max_examples=200)
def test_pieces_join_to_the_text_and_each_is_within_the_limit(text, limit):
    pieces = list(split(text, limit))
    assert "".join(pieces) == text
    assert all(encoded_size(piece) <= limit for piece in pieces)
    assert all(pieces) or pieces == [""]
    assert fits(text, limit) is (encoded_size(text) <= limit)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_sizes_are_those_of_the_encoder(text):
    assert encoded_size(text) == len(orjson.dumps(text)) - 2


@given(NASTY, st.integers(0, 40), st.integers(100, 300))
def test_a_cut_text_is_within_the_limit_and_says_what_is_missing(unit, times, limit):
    text = unit * times
    shown = cut(text, limit)
    assert encoded_size(shown) <= limit
    if shown != text:
        head, _, marker = shown.rpartition("\n")
        assert text.startswith(head)
        assert marker == f"[{len(text) - len(head)} of {len(text)} characters not shown]"


COSTLY = pytest.mark.parametrize("letter", ["\x00", "🎉"], ids=ascii)


@COSTLY
def test_large_values_stay_far_below_the_line_limit(letter):
    text = letter * (2 * TEXT_LIMIT)
    head = {"type": "text", "text": text}
    events: list[Event] = [
        AgentText("m", text),
        AgentThought("m", text),
        UserMessage("m", {**head, "_meta": {"x": text}}),
        UserMessage("m", {"type": "resource", "resource": {"uri": "file:///a", "text": text * 3}}),
        UserMessage("m", {"type": "resource", "resource": {"uri": text * 3, "blob": text}}),
        ToolCallStarted("c", text, text, "other", {"a": text}, (Location(text),) * 200, "completed", text),
        ToolCallStarted("c", "n", "t", "other", {text: [text]}, (Location("/a" * 2000),) * 5000),
        ToolCallChanged("c", "completed", text),
        TitleChanged(text, "T"),
        CommandsAvailable((("n", text, text),)),
        Noticed("info", text, text),
    ]
    for event in events:
        for options in (WireOptions(), WireOptions(notices=True)):
            for method, params in updates("S", event, options):
                assert len(orjson.dumps(params)) < TEN_MIB * 0.6
                check_params(method, params)


@COSTLY
def test_no_text_is_lost_in_chunks(letter):
    text = letter * (2 * TEXT_LIMIT)
    for event in (AgentText("m", text), UserMessage("m", {"type": "text", "text": text})):
        chunks = bodies(event)
        assert "".join(text_of(chunk) for chunk in chunks) == text
        assert {chunk["messageId"] for chunk in chunks} == {"m"}


@pytest.mark.parametrize(
    "arguments", [{"n": 10**30}, {"s": "\ud800"}, {"deep": json.loads("[" * 400 + "]" * 400)}]
)
def test_arguments_that_the_encoder_refuses_are_shown_as_text(arguments):
    shown = bounded_object(arguments)
    assert json.loads(orjson.dumps(shown)) == shown
    assert json.loads(str(shown["json"])) == arguments


@given(values_of("ContentBlock"))
def test_a_stored_block_goes_back_as_it_came_without_nulls(block):
    (chunk,) = bodies(UserMessage("m", block))
    check_params("session/update", {"sessionId": "S", "update": chunk})
    assert not nulls_in(chunk)
    content = chunk["content"]
    assert isinstance(content, dict)
    assert content == {key: value for key, value in block.items() if value is not None} or nulls_in(block)
