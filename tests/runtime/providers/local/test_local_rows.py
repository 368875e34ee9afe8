"""What a model without tools is shown in place of calls and results, and what it may write."""

import json

import orjson

from runtime.providers.local.guided_replies import (
    arguments_schema,
    guided_rows,
    is_guided,
    plain_rows,
    reply_schema,
)
from runtime.values.model import ModelRequest, Segment
from runtime.values.rows import Image, Row, ToolCall, ToolSpec

READ = ToolSpec(
    "read_file",
    "Read a file.",
    '{"type":"object","properties":{"path":{"type":"string","pattern":"^x","description":"where"},'
    '"how":{"$ref":"#/$defs/H"},"many":{"type":"array","items":{"type":"integer","minimum":1}}},'
    '"required":["path"],"$defs":{"H":{}}}',
)
CALLED = (
    Row("user", "look"),
    Row(
        "assistant",
        "I look.",
        (ToolCall("a", "read_file", '{"path":"ü"}'), ToolCall("b", "list_dir", "{broken")),
    ),
    Row("tool", "one", tool_call_id="a"),
    Row("tool", "two", tool_call_id="b"),
    Row("assistant", "Done."),
    Row("user", "thanks"),
)


def request(*segments: tuple[Row, ...], tools: tuple[ToolSpec, ...] = ()) -> ModelRequest:
    return ModelRequest("m", tuple(Segment(rows) for rows in segments), tools)


def test_calls_and_results_become_text():
    sent = guided_rows(request((Row("system", "Be brief."),), CALLED, tools=(READ,)))
    assert sent.tools == ()
    head, *rows = sent.rows()
    assert head.role == "system"
    assert head.content.startswith("Be brief.\n\nReply with one JSON object")
    assert f"- read_file: Read a file. {READ.parameters}" in head.content
    assert [row.role for row in rows] == ["user", "assistant", "user", "assistant", "user"]
    said = [json.loads(line) for line in rows[1].content.splitlines()]
    assert said == [
        {"answer": "I look."},
        {"tool": "read_file", "arguments": {"path": "ü"}},
        {"tool": "list_dir", "arguments": {"invalid_arguments": "{broken"}},
    ]
    assert rows[2].content.startswith("[Tool results]\n")
    assert rows[2].content.index('name="read_file"') < rows[2].content.index('name="list_dir"')
    assert json.loads(rows[3].content) == {"answer": "Done."}
    assert rows[4] == Row("user", "thanks")


def test_results_in_another_segment_know_their_call():
    sent = guided_rows(request(CALLED[:2], CALLED[2:]))
    assert 'name="list_dir"' in sent.rows()[2].content


def test_guidance_only_where_there_are_tools():
    assert is_guided(request(CALLED))
    assert is_guided(request((Row("user", "x"),), tools=(READ,)))
    assert not is_guided(request((Row("user", "x"), Row("assistant", "y"))))


def test_one_system_row_and_segments_that_keep_their_bytes():
    talk = Segment((Row("user", "hi"), Row("assistant", "ho")))
    asked = ModelRequest(
        "m", (Segment((Row("system", "a"), Row("system", " "))), Segment((Row("system", "b"),)), talk)
    )
    sent = plain_rows(asked)
    assert sent.segments[0].rows == (Row("system", "a\n\nb"),)
    assert sent.segments[1] is talk


def test_a_request_without_a_system_row_gets_none():
    assert plain_rows(request((Row("user", "x"),))).rows() == [Row("user", "x")]


def test_pictures_become_a_line():
    shown = Row(
        "user", "see", images=(Image("image/png", data="AAAA"), Image("image/png", uri="file:///a.png"))
    )
    (row,) = plain_rows(request((shown,))).rows()
    assert row.images == ()
    assert "image/png" in row.content
    assert "file:///a.png" in row.content
    assert "AAAA" not in row.content


def test_the_schema_of_a_reply():
    answer, call = json.loads(orjson.dumps(reply_schema((READ,))))["anyOf"]
    assert answer["required"] == ["answer"]
    assert list(call["properties"]) == ["tool", "arguments"]  # the name comes first, so that it shows first
    assert call["properties"]["tool"] == {"const": "read_file"}
    arguments = call["properties"]["arguments"]
    assert arguments["required"] == ["path"]
    assert arguments["properties"] == {
        "path": {"type": "string"},
        "how": {},
        "many": {"type": "array", "items": {"type": "integer"}},
    }
    assert "anyOf" not in reply_schema(())


def test_a_schema_that_is_none_takes_any_object():
    assert arguments_schema("{") == arguments_schema("[]") == arguments_schema('{"type":"string"}')
    assert arguments_schema("{") == {"type": "object"}
