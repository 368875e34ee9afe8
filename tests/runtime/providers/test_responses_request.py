"""The body of a Responses API request: what rows become, and that what was sent stays byte for byte."""

from collections.abc import Mapping

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.providers.http.encoding import fitting_id
from runtime.providers.openai_responses.request import CODEC, BodyShape, BodyWriter, items
from runtime.values.model import ModelRequest, Segment
from runtime.values.rows import Image, Row, ToolCall, ToolSpec

TOOL = ToolSpec("read_file", "Read.", '{"type":"object"}')
CALLS = (ToolCall("a", "f", '{ "x": 1 }'), ToolCall("b", "f", ""))
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gA"}


def said(text: str) -> dict[str, object]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def asked(content: object) -> dict[str, object]:
    return {"type": "message", "role": "user", "content": content}


def call(ident: str, arguments: str) -> dict[str, object]:
    return {"type": "function_call", "call_id": ident, "name": "f", "arguments": arguments}


def output(ident: str, text: str) -> dict[str, object]:
    return {"type": "function_call_output", "call_id": ident, "output": text}


def payload(*marks: Mapping[str, object]) -> str:
    return orjson.dumps(marks).decode()


PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
LOST = {"type": "input_text", "text": "[image that could not be sent: file:///a.png]"}
ROWS = {
    "system": (Row("system", "s"), []),
    "user": (Row("user", "u"), [asked("u")]),
    "blank user": (Row("user", ""), [asked("(empty)")]),
    "assistant": (Row("assistant", "a"), [said("a")]),
    "blank assistant": (Row("assistant", ""), [said("(empty)")]),
    "calls": (Row("assistant", "", CALLS), [call("a", '{ "x": 1 }'), call("b", "{}")]),
    "calls with text": (Row("assistant", "now", CALLS[1:]), [said("now"), call("b", "{}")]),
    "tool": (Row("tool", "r", tool_call_id="a"), [output("a", "r")]),
    "tool without text": (Row("tool", "", tool_call_id="a"), [output("a", "(empty)")]),
    "images": (
        Row("user", "see", images=(Image("image/png", "AAAA"), Image("image/png", uri="file:///a.png"))),
        [asked([{"type": "input_text", "text": "see"}, PICTURE, LOST])],
    ),
    "reasoning": (
        Row("assistant", "", CALLS[1:], reasoning=payload(THOUGHT, {"type": "call"})),
        [THOUGHT, call("b", "{}")],
    ),
    "reasoning in between": (
        Row(
            "assistant",
            "x",
            CALLS,
            reasoning=payload({"type": "call"}, THOUGHT, {"type": "text", "chars": 1}, {"type": "call"}),
        ),
        [call("a", '{ "x": 1 }'), THOUGHT, said("x"), call("b", "{}")],
    ),
    "thinking of another API": (
        Row(
            "assistant",
            "",
            CALLS[1:],
            reasoning=payload({"type": "thinking", "signature": "s"}, {"type": "call"}),
        ),
        [call("b", "{}")],
    ),
    "odd names": (
        Row("assistant", "", (ToolCall("a.b", "x y", "{}"),)),
        [{"type": "function_call", "call_id": fitting_id("a.b"), "name": "x_y", "arguments": "{}"}],
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows(name):
    row, wanted = ROWS[name]
    assert items(row) == wanted


def body_of(*segments: Segment, shape: BodyShape = BodyShape(), model: str = "m", limit: int | None = None):  # noqa: B008
    return orjson.loads(BodyWriter(shape).body(ModelRequest(model, segments, (TOOL,), limit)))


def test_body():
    segments = (Segment((Row("system", "s"), Row("system", "t"))), Segment(()), Segment((Row("user", "u"),)))
    shape = BodyShape(extra={"reasoning": {"effort": "low"}})
    assert body_of(*segments, shape=shape, limit=99) == {
        "model": "m",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low"},
        "tools": [
            {
                "type": "function",
                "name": "read_file",
                "description": "Read.",
                "parameters": {"type": "object"},
                "strict": False,
            }
        ],
        "instructions": "s\n\nt",
        "input": [asked("u")],
        "max_output_tokens": 99,
    }


@pytest.mark.parametrize(
    ("model", "wanted", "sent"),
    [
        ("gpt-5-mini", None, True),
        ("gpt-4o", None, False),
        ("openai/gpt-4.1", None, False),
        ("gpt-4o", True, True),
        ("gpt-5-mini", False, False),
    ],
)
def test_reasoning_is_asked_for_where_there_is_any(model, wanted, sent):
    body = body_of(Segment((Row("user", "u"),)), shape=BodyShape(wanted), model=model)
    assert ("include" in body) == sent


def test_the_next_request_starts_with_the_bytes_of_the_last():
    writer = BodyWriter(BodyShape())
    first = (Segment((Row("system", "s"),)), Segment((Row("user", "u"), Row("assistant", "a"))))
    more = (*first, Segment((Row("user", "v"),)))
    one = writer.body(ModelRequest("m", first, (TOOL,), 500))
    two = writer.body(ModelRequest("m", more, (TOOL,), 400))
    assert two.startswith(one[: one.index(b'],"max_output_tokens"')])


def test_rows_are_encoded_once():
    segment = Segment((Row("user", "u"),))
    writer = BodyWriter(BodyShape())
    writer.body(ModelRequest("m", (segment,)))
    assert orjson.loads(segment.encoded[CODEC]) == asked("u")
    segment.encoded[CODEC] = b'{"type":"message","role":"user","content":"from the cache"}'
    assert b"from the cache" in writer.body(ModelRequest("m", (segment,)))


def test_other_instructions_are_another_head():
    writer, row = BodyWriter(BodyShape()), Segment((Row("user", "u"),))
    told = [
        orjson.loads(writer.body(ModelRequest("m", (Segment((Row("system", text),)), row)))).get(
            "instructions"
        )
        for text in ("a", "b", "", "a")
    ]
    assert told == ["a", "b", None, "a"]


ANY_TEXT = st.text(st.characters(codec=None))


@given(ANY_TEXT, ANY_TEXT, ANY_TEXT)
def test_any_text_can_be_sent(content, arguments, told):
    rows = (Row("system", told), Row("user", content), Row("assistant", "", (ToolCall("i", "f", arguments),)))
    sent = body_of(Segment(rows))["input"]
    odd = not content.strip() or any("\ud800" <= char <= "\udfff" for char in content)
    assert odd or sent[0]["content"] == content
