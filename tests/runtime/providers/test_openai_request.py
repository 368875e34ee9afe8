"""The body of a request: what each row becomes, and that what was sent stays byte for byte."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.providers.http.encoding import EMPTY, safe_arguments
from runtime.providers.openai_chat.request import CODEC, BodyShape, BodyWriter, message
from runtime.values.model import ModelRequest, Segment
from runtime.values.rows import Image, Row, ToolCall, ToolSpec

TOOL = ToolSpec("read_file", "Read.", '{"type":"object","properties":{"path":{"type":"string"}}}')


def read(name: str, arguments: str) -> dict[str, object]:
    return {"id": name, "type": "function", "function": {"name": "f", "arguments": arguments}}


CALLS = (ToolCall("a", "f", '{ "x": 1 }'), ToolCall("b", "f", ""))
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
ROWS = {
    "system": (Row("system", "s"), {"role": "system", "content": "s"}),
    "user": (Row("user", "u"), {"role": "user", "content": "u"}),
    "assistant": (Row("assistant", "a"), {"role": "assistant", "content": "a"}),
    "calls without text": (
        Row("assistant", "", CALLS),
        {"role": "assistant", "content": None, "tool_calls": [read("a", '{ "x": 1 }'), read("b", "{}")]},
    ),
    "calls with text": (
        Row("assistant", "now", CALLS[:1]),
        {"role": "assistant", "content": "now", "tool_calls": [read("a", '{ "x": 1 }')]},
    ),
    "tool": (
        Row("tool", "r", tool_call_id="a"),
        {"role": "tool", "tool_call_id": "a", "content": "r"},
    ),
    "tool without text": (
        Row("tool", "", tool_call_id="a"),
        {"role": "tool", "tool_call_id": "a", "content": EMPTY},
    ),
    "blank user": (Row("user", " \n"), {"role": "user", "content": EMPTY}),
    "blank assistant": (Row("assistant", ""), {"role": "assistant", "content": EMPTY}),
    "image": (
        Row(
            "user", "see", images=(Image("image/png", "AAAA"), Image("image/png", uri="https://x.test/a.png"))
        ),
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "see"},
                PICTURE,
                {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}},
            ],
        },
    ),
    "image alone": (
        Row("user", "", images=(Image("image/png", "AAAA"),)),
        {"role": "user", "content": [PICTURE]},
    ),
    "image of this machine": (
        Row("user", "", images=(Image("image/png", uri="file:///a.png"),)),
        {
            "role": "user",
            "content": [{"type": "text", "text": "[image that could not be sent: file:///a.png]"}],
        },
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows(name):
    row, wanted = ROWS[name]
    assert message(row) == wanted


ARGUMENTS = {
    '{"a":1}': '{"a":1}',
    ' {"a": 1.0e3}\n': ' {"a": 1.0e3}\n',
    "": "{}",
    "  ": "{}",
    "null": "{}",
    '{"a":': '{"invalid_arguments": "{\\"a\\":"}',
    "[1]": '{"invalid_arguments": "[1]"}',
    "ä": '{"invalid_arguments": "ä"}',
}


@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_arguments(arguments):
    assert safe_arguments(arguments) == ARGUMENTS[arguments]


@given(st.text())
def test_arguments_are_always_an_object(arguments):
    assert isinstance(orjson.loads(safe_arguments(arguments)), dict)


def test_body():
    asked = ModelRequest(
        "m", (Segment((Row("system", "s"),)), Segment(()), Segment((Row("user", "u"),))), (TOOL,), 99
    )
    body = BodyWriter(BodyShape("max_completion_tokens", extra={"temperature": 0.5})).body(asked)
    assert orjson.loads(body) == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read_file",
                    "description": "Read.",
                    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
                },
            }
        ],
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}],
        "max_completion_tokens": 99,
    }
    assert TOOL.parameters.encode() in body


def test_without_options():
    body = BodyWriter(BodyShape(stream_usage=False)).body(ModelRequest("m", (Segment((Row("user", "u"),)),)))
    assert orjson.loads(body) == {
        "model": "m",
        "stream": True,
        "messages": [{"role": "user", "content": "u"}],
    }


@pytest.mark.parametrize("rows", [(), (Row("system", ""),)])
def test_segments_without_anything_to_send_leave_no_comma(rows):
    segments = (Segment(rows), Segment((Row("user", "u"),)), Segment(rows))
    body = orjson.loads(BodyWriter(BodyShape()).body(ModelRequest("m", segments)))
    assert body["messages"] == [{"role": "user", "content": "u"}]


def test_the_next_request_starts_with_the_bytes_of_the_last():
    writer = BodyWriter(BodyShape())
    first = (Segment((Row("system", "s"),)), Segment((Row("user", "u"), Row("assistant", "a"))))
    more = (*first, Segment((Row("user", "v"),)))
    one = writer.body(ModelRequest("m", first, (TOOL,), 500))
    two = writer.body(ModelRequest("m", more, (TOOL,), 400))
    prefix = one[: one.index(b'],"max_tokens"')]
    assert two.startswith(prefix)


def test_rows_are_encoded_once():
    segment = Segment((Row("user", "u"),))
    BodyWriter(BodyShape()).body(ModelRequest("m", (segment,)))
    kept = segment.encoded[CODEC]
    segment.encoded[CODEC] = b'{"role":"user","content":"from the cache"}'
    assert b"from the cache" in BodyWriter(BodyShape()).body(ModelRequest("m", (segment,)))
    assert orjson.loads(kept) == {"role": "user", "content": "u"}


def test_what_the_last_body_began_with_is_not_put_together_again():
    first, second, other = (Segment((Row("user", text),)) for text in ("one", "two", "three"))
    writer = BodyWriter(BodyShape())
    writer.body(ModelRequest("m", (first,)))
    first.encoded[CODEC] = b'{"role":"user","content":"made anew"}'
    went_on = orjson.loads(writer.body(ModelRequest("m", (first, second))))
    assert [row["content"] for row in went_on["messages"]] == ["one\n\ntwo"]
    elsewhere = orjson.loads(writer.body(ModelRequest("m", (first, other))))
    assert [row["content"] for row in elsewhere["messages"]] == ["made anew\n\nthree"]


def test_another_model_or_tool_list_is_another_head():
    writer, segments = BodyWriter(BodyShape()), (Segment((Row("user", "u"),)),)
    bodies = [
        orjson.loads(writer.body(ModelRequest(model, segments, tools)))
        for model, tools in (("m", ()), ("n", ()), ("n", (TOOL,)), ("m", ()))
    ]
    assert [(body["model"], "tools" in body) for body in bodies] == [
        ("m", False),
        ("n", False),
        ("n", True),
        ("m", False),
    ]


ANY_TEXT = st.text(st.characters(codec=None))


@given(ANY_TEXT, ANY_TEXT, ANY_TEXT)
def test_any_text_can_be_sent(content, arguments, description):
    rows = (Row("user", content), Row("assistant", "", (ToolCall("i", "f", arguments),)))
    tool = ToolSpec("f", description, '{"type":"object"}')
    body = BodyWriter(BodyShape()).body(ModelRequest("m", (Segment(rows),), (tool,)))
    sent = orjson.loads(body)["messages"][0]["content"]
    assert sent == content or not content.strip() or any("\ud800" <= char <= "\udfff" for char in content)


def test_neighbouring_user_texts_are_one_message_whatever_segment_they_stand_in():
    crumb, picture = Row("user", "[left out]"), Row("user", "see", images=(Image("image/png", data="AA"),))
    segments = (
        Segment((Row("system", "s"),)),
        Segment((crumb,)),
        Segment((Row("user", 'say "hi"\n'), Row("user", "twice"), Row("assistant", "hi"))),
        Segment((Row("user", "more"), picture, Row("user", "last"))),
    )
    sent = orjson.loads(BodyWriter(BodyShape()).body(ModelRequest("m", segments)))["messages"]
    assert [(one["role"], one["content"]) for one in sent if isinstance(one["content"], str)] == [
        ("system", "s"),
        ("user", '[left out]\n\nsay "hi"\n\n\ntwice'),
        ("assistant", "hi"),
        ("user", "more"),
        ("user", "last"),
    ]
    assert len(sent) == 6
