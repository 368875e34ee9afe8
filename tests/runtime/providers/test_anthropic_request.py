"""The body of a Messages API request: what rows become, and that what was sent stays byte for byte."""

from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.providers.anthropic import messages as anthropic_blocks
from runtime.providers.anthropic.messages import MARK, blocks
from runtime.providers.anthropic.request import BodyShape, BodyWriter
from runtime.values.model import ModelRequest, Segment
from runtime.values.rows import Image, Row, ToolCall, ToolSpec

TOOL = ToolSpec("read_file", "Read.", '{"type":"object","properties":{"path":{"type":"string"}}}')
CALLS = (ToolCall("a", "f", '{ "x": 1 }'), ToolCall("b", "f", ""))
EMPTY = {"type": "text", "text": "(empty)"}
PLAIN = BodyShape(prompt_cache=False)
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
MARKED = {"type": "ephemeral"}


def said(text: str, **more: object) -> dict[str, object]:
    return {"type": "text", "text": text, **more}


def use(ident: str, given: dict[str, object]) -> dict[str, object]:
    return {"type": "tool_use", "id": ident, "name": "f", "input": given}


def result(ident: str, text: str) -> dict[str, object]:
    return {"type": "tool_result", "tool_use_id": ident, "content": text}


def payload(*items: Mapping[str, object]) -> str:
    return orjson.dumps(items).decode()


PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
ROWS = {
    "user": (Row("user", "u"), [said("u")]),
    "blank user": (Row("user", " \n"), [EMPTY]),
    "assistant": (Row("assistant", "a "), [said("a ")]),
    "blank assistant": (Row("assistant", ""), [EMPTY]),
    "calls": (Row("assistant", " ", CALLS), [use("a", {"x": 1}), use("b", {})]),
    "calls with text": (Row("assistant", "now", CALLS[:1]), [said("now"), use("a", {"x": 1})]),
    "broken arguments": (
        Row("assistant", "", (ToolCall("a", "f", '{"x":'),)),
        [use("a", {"invalid_arguments": '{"x":'})],
    ),
    "tool": (Row("tool", "r", tool_call_id="a"), [result("a", "r")]),
    "tool without text": (Row("tool", "", tool_call_id="a"), [result("a", "(empty)")]),
    "images": (
        Row(
            "user",
            "see",
            images=(
                Image("image/png", "AAAA"),
                Image("image/png", uri="data:image/png;base64,AAAA"),
                Image("image/png", uri="https://x.test/a.png"),
            ),
        ),
        [
            said("see"),
            PICTURE,
            PICTURE,
            {"type": "image", "source": {"type": "url", "url": "https://x.test/a.png"}},
        ],
    ),
    "images that cannot be sent": (
        Row("user", "", images=(Image("image/tiff", "AAAA"), Image("image/png", uri="file:///a.png"))),
        [
            said("[image that could not be sent: image/tiff]"),
            said("[image that could not be sent: file:///a.png]"),
        ],
    ),
    "thinking": (
        Row(
            "assistant",
            "now",
            CALLS[:1],
            reasoning=payload(THOUGHT, {"type": "text", "chars": 3}, {"type": "call"}),
        ),
        [THOUGHT, said("now"), use("a", {"x": 1})],
    ),
    "thinking in between": (
        Row(
            "assistant",
            "ab",
            CALLS,
            reasoning=payload(
                {"type": "text", "chars": 1},
                THOUGHT,
                {"type": "call"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "chars": 1},
                {"type": "call"},
            ),
        ),
        [
            said("a"),
            THOUGHT,
            use("a", {"x": 1}),
            {"type": "redacted_thinking", "data": "x"},
            said("b"),
            use("b", {}),
        ],
    ),
    "thinking of a row that was changed": (
        Row(
            "assistant",
            "ab",
            CALLS[:1],
            reasoning=payload({"type": "text", "chars": 2}, THOUGHT, {"type": "call"}, {"type": "call"}),
        ),
        [THOUGHT, said("ab"), use("a", {"x": 1})],
    ),
    "reasoning of another API": (
        Row(
            "assistant", "", CALLS[:1], reasoning=payload({"type": "reasoning", "id": "r"}, {"type": "call"})
        ),
        [use("a", {"x": 1})],
    ),
    "reasoning that is none": (Row("assistant", "", CALLS[:1], reasoning="{nonsense"), [use("a", {"x": 1})]),
}


def plain(made: object) -> object:
    return orjson.loads(orjson.dumps(made))


@pytest.mark.parametrize("name", ROWS)
def test_rows(name):
    row, wanted = ROWS[name]
    assert plain(blocks(row)) == wanted


def body_of(
    *segments: Segment,
    shape: BodyShape = PLAIN,
    tools: tuple[ToolSpec, ...] = (TOOL,),
    limit: int | None = None,
):
    return orjson.loads(BodyWriter(shape).body(ModelRequest("m", segments, tools, limit)))


def messages(*rows: Row, cut: int = 0) -> list[tuple[str, list[Any]]]:
    """The messages of these rows in two segments, cut there."""
    body = body_of(Segment(rows[:cut]), Segment(rows[cut:]))
    return [(message["role"], message["content"]) for message in body["messages"]]


ROUND = (
    Row("system", "s"),
    Row("user", "u"),
    Row("user", "v", origin="runtime"),
    Row("assistant", "", CALLS),
    Row("tool", "1", tool_call_id="a"),
    Row("tool", "2", tool_call_id="b"),
    Row("user", "go on", origin="runtime"),
    Row("assistant", "x"),
    Row("assistant", "y"),
)
MERGED = [
    ("user", [said("u"), said("v")]),
    ("assistant", [use("a", {"x": 1}), use("b", {})]),
    ("user", [result("a", "1"), result("b", "2"), said("go on")]),
    ("assistant", [said("x"), said("y")]),
]


@pytest.mark.parametrize("cut", range(len(ROUND) + 1))
def test_neighbours_share_a_message_wherever_segments_end(cut):
    assert messages(*ROUND, cut=cut) == MERGED


def test_a_user_comes_first_and_someone_always():
    assert messages(Row("assistant", "a")) == [("user", [EMPTY]), ("assistant", [said("a")])]
    assert messages(Row("system", "s")) == [("user", [EMPTY])]


def test_body():
    asked = (Segment((Row("system", "s"),)), Segment(()), Segment((Row("user", "u"),)))
    shape = BodyShape(prompt_cache=False, extra={"temperature": 0.5})
    assert body_of(*asked, shape=shape, limit=99) == {
        "model": "m",
        "stream": True,
        "temperature": 0.5,
        "tools": [
            {
                "name": "read_file",
                "description": "Read.",
                "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
            }
        ],
        "system": [said("s")],
        "messages": [{"role": "user", "content": [said("u")]}],
        "max_tokens": 99,
    }


def test_without_options():
    assert body_of(Segment((Row("user", "u"),)), tools=()) == {
        "model": "m",
        "stream": True,
        "messages": [{"role": "user", "content": [said("u")]}],
        "max_tokens": 4096,
    }


def test_calls_without_tools_name_them_and_forbid_them():
    body = body_of(Segment(ROUND), tools=())
    assert body["tools"] == [{"name": "f", "input_schema": {"type": "object"}}]
    assert body["tool_choice"] == {"type": "none"}


def talk() -> list[Segment]:
    return [
        Segment((Row("system", "s"),)),
        Segment((Row("user", "one"), Row("assistant", "1"))),
        Segment((Row("user", "two"),)),
        Segment((Row("assistant", "2"),)),
        Segment((Row("user", "three"),)),
        Segment((Row("assistant", "", CALLS[:1]), Row("tool", "r", tool_call_id="a"))),
        Segment((Row("user", "hurry", origin="runtime"),)),
    ]


def test_cache_breakpoints():
    body = body_of(*talk(), shape=BodyShape())
    assert orjson.dumps(body).count(b"cache_control") == 4
    assert body["tools"][-1]["cache_control"] == MARKED
    assert body["system"] == [said("s", cache_control=MARKED)]
    assert body["messages"][3]["content"] == [said("2", cache_control=MARKED)]
    assert body["messages"][-1]["content"][-1] == said("hurry", cache_control=MARKED)


def test_a_first_prompt_has_one_breakpoint_of_its_own():
    body = body_of(*talk()[:1], Segment((Row("user", "u"),)), shape=BodyShape())
    assert body["messages"] == [{"role": "user", "content": [said("u", cache_control=MARKED)]}]


def unmarked(body: bytes) -> bytes:
    return body.replace(MARK, b"}")


@pytest.mark.parametrize("shape", [PLAIN, BodyShape()])
def test_the_next_request_starts_with_the_bytes_of_the_last(shape):
    writer, segments = BodyWriter(shape), talk()
    before = b""
    for end in range(2, len(segments) + 1):
        sent = unmarked(writer.body(ModelRequest("m", tuple(segments[:end]), (TOOL,), 500 - end)))
        assert sent.startswith(before)
        before = sent[: sent.index(b']}],"max_tokens"')]


def test_turns_that_leave_take_only_their_own_bytes():
    writer, segments = BodyWriter(BodyShape()), talk()
    all_of_it = writer.body(ModelRequest("m", tuple(segments), (TOOL,)))
    trimmed = writer.body(ModelRequest("m", (segments[0], *segments[2:]), (TOOL,)))
    head = trimmed[: trimmed.index(b'"messages"')]
    assert all_of_it.startswith(head)
    assert head.endswith(MARK + b"],")
    kept = b'{"type":"text","text":"two"}'
    assert trimmed[trimmed.index(kept) :] == all_of_it[all_of_it.index(kept) :]


def test_a_new_row_is_the_only_one_that_is_encoded(monkeypatch):
    seen: list[Row] = []

    def counting(row: Row, *, reasoning: bool = True):
        seen.append(row)
        return blocks(row, reasoning=reasoning)

    monkeypatch.setattr(anthropic_blocks, "blocks", counting)
    writer, segments = BodyWriter(BodyShape()), talk()
    for end in range(1, len(segments) + 1):
        seen.clear()
        writer.body(ModelRequest("m", tuple(segments[:end]), (TOOL,)))
        assert seen == [row for row in segments[end - 1].rows if row.role != "system"]
    seen.clear()
    writer.body(ModelRequest("m", tuple(segments), (TOOL,)))
    assert seen == []


FIRST = Row("assistant", "", CALLS[:1], reasoning=payload(THOUGHT, {"type": "call"}))
BARE = Row("assistant", "", CALLS[:1])
RESULT = Row("tool", "r", tool_call_id="a")
THINKING = BodyShape(thinking_budget=2000)
BUDGETS = [
    ((), THINKING, None, 6096, 2000),
    ((), THINKING, 3000, 3000, 2000),
    ((), THINKING, 2000, 2000, 1500),
    ((), THINKING, 1300, 1300, None),
    ((FIRST, RESULT), THINKING, None, 6096, 2000),
    ((FIRST, RESULT, BARE, RESULT), THINKING, None, 6096, 2000),
    ((BARE, RESULT), THINKING, None, 6096, None),
    ((BARE, RESULT, Row("user", "next")), THINKING, None, 6096, 2000),
    ((FIRST, RESULT), BodyShape(), None, 4096, None),
]


@pytest.mark.parametrize(("rows", "shape", "asked", "limit", "budget"), BUDGETS)
def test_thinking(rows, shape, asked, limit, budget):
    segments = [Segment((row,)) for row in (Row("user", "u"), *rows)]
    body = body_of(*segments, shape=shape, limit=asked)
    assert body["max_tokens"] == limit
    assert body.get("thinking") == (budget and {"type": "enabled", "budget_tokens": budget})
    sent = any(block["type"] == "thinking" for message in body["messages"] for block in message["content"])
    assert sent == (FIRST in rows)


def test_without_thinking_no_thinking_block_is_sent():
    segments = (Segment((Row("user", "u"),)), Segment((FIRST, RESULT)))
    writer = BodyWriter(THINKING)
    for limit, sent in ((None, True), (500, False), (None, True)):
        assert (b"signature" in writer.body(ModelRequest("m", segments, (TOOL,), limit))) == sent


ODD_IDS = ["call:1", "call.1", "ä", "", "x" * 200, "functions.read_file:0"]


def test_ids_fit_and_stay_apart():
    rows = [
        row
        for ident in ODD_IDS
        for row in (
            Row("assistant", "", (ToolCall(ident, "a.b", "{}"),)),
            Row("tool", "r", tool_call_id=ident),
        )
    ]
    made = messages(Row("user", "u"), *rows)
    calls = [message[1][0]["id"] for message in made[1::2]]
    assert calls == [message[1][0]["tool_use_id"] for message in made[2::2]]
    assert len(set(calls)) == len(ODD_IDS)
    assert all(len(ident) <= 64 and ident.replace("-", "").replace("_", "").isalnum() for ident in calls)
    assert {message[1][0]["name"] for message in made[1::2]} == {"a_b"}


ANY_TEXT = st.text(st.characters(codec=None))


@given(ANY_TEXT, ANY_TEXT, ANY_TEXT, ANY_TEXT)
def test_any_text_can_be_sent(content, arguments, ident, description):
    rows = (Row("user", content), Row("assistant", "", (ToolCall(ident, "f", arguments),)))
    tool = ToolSpec("f", description, '{"type":"object"}')
    sent = body_of(Segment(rows), tools=(tool,))["messages"]
    odd = not content.strip() or any("\ud800" <= char <= "\udfff" for char in content)
    assert odd or sent[0]["content"] == [said(content)]
    assert isinstance(sent[1]["content"][0]["input"], dict)
