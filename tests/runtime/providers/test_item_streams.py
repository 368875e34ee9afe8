"""Answers of the Messages and the Responses API, whole and cut anywhere, give the same parts."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.providers.anthropic.events import MessagesDecoder
from runtime.providers.errors.failures import Peer
from runtime.providers.http.decoding import Decoder
from runtime.providers.http.event_stream import ReplyReader
from runtime.providers.openai_responses.events import ResponsesDecoder
from runtime.values.errors import ProviderErrorKind
from runtime.values.model import CallPart, CallStartPart
from tests.runtime.providers.reading import Answer, read_answer, read_parts

STREAMS = Path(__file__).parents[2] / "data" / "streams"
DECODERS: dict[str, type[MessagesDecoder] | type[ResponsesDecoder]] = {
    "messages": MessagesDecoder,
    "responses": ResponsesDecoder,
}
Kind = ProviderErrorKind
LIST = ("toolu_01C", "list_dir", '{"path":"."}')
Object = dict[str, object]
CALL: Object = {"type": "call"}


def text(chars: int) -> Object:
    return {"type": "text", "chars": chars}


def summary(ident: str, *said: str, key: str = "gAAAAABo=") -> Object:
    told = [{"type": "summary_text", "text": text} for text in said]
    return {"type": "reasoning", "id": ident, "summary": told, "encrypted_content": key}


EXPECTED = {
    "messages/text.sse": Answer("Hello, «world» 🌍", usage=(1512, 9, 1200), stop="end"),
    "messages/thinking_tools.sse": Answer(
        "Let me look.",
        "I need the file.",
        (("toolu_01A", "read_file", '{"path": "a.txt"}'), ("toolu_01B", "list_dir", "{}")),
        (25, 88, 0),
        "tool_calls",
    ),
    "messages/interleaved.sse": Answer("First.", calls=(LIST,), usage=(25, 40, 0), stop="tool_calls"),
    "messages/thinking_text.sse": Answer("42", "Easy.", usage=(25, 12, 0), stop="end"),
    "messages/max_tokens.sse": Answer("Once upon", usage=(25, 16, 0), stop="length"),
    "messages/window_full.sse": Answer("Once upon", usage=(25, 16, 0), stop="length"),
    "messages/refusal.sse": Answer("I", usage=(25, 1, 0), stop="refusal"),
    "messages/pause_turn.sse": Answer("Searching.", usage=(25, 30, 0), stop="end"),
    "messages/overloaded.sse": Answer("Half an", failure=Kind.OVERLOADED),
    "messages/citations.sse": Answer("As said.", usage=(25, 3, 0), stop="end"),
    "messages/whole.json": Answer(
        "All at once.", "Hm.", (("toolu_1", "list_dir", '{"path":"."}'),), (3, 4, 0), "tool_calls"
    ),
    "responses/text.sse": Answer("Hello, «world» 🌍", usage=(1500, 9, 1200), stop="end"),
    "responses/reasoning_tools.sse": Answer(
        "Let me look.",
        "**Looking**\n\nI need the file.",
        (("call_1", "read_file", '{"path":"a.txt"}'), ("call_2", "list_dir", "{}")),
        (90, 40, 0),
        "tool_calls",
    ),
    "responses/two_thoughts.sse": Answer(
        "",
        "One",
        (("call_1", "list_dir", '{"path":"."}'), ("call_2", "list_dir", "{}")),
        (20, 10, 0),
        "tool_calls",
    ),
    "responses/reasoning_text.sse": Answer("42", "Easy.", usage=(12, 8, 0), stop="end"),
    "responses/output_limit.sse": Answer("Once upon", usage=(31, 16, 0), stop="length"),
    "responses/content_filter.sse": Answer("I", usage=(31, 1, 0), stop="refusal"),
    "responses/refusal.sse": Answer("I can't help.", usage=(5, 4, 0), stop="refusal"),
    "responses/failed.sse": Answer("Half an", failure=Kind.SERVER),
    "responses/rate_limited.sse": Answer(failure=Kind.RATE_LIMIT),
    "responses/unstreamed_items.sse": Answer(
        "All at once.", "Well.", (("call_1", "list_dir", "{}"),), (3, 4, 0), "tool_calls"
    ),
    "responses/llamacpp_ids_only.sse": Answer(
        "Looking.", calls=(("call_7", "list_dir", '{"path":"."}'),), usage=(31, 9, 0), stop="tool_calls"
    ),
    "responses/whole.json": Answer(
        "All at once.", "Hm.", (("call_1", "list_dir", "{}"),), (3, 4, 0), "tool_calls"
    ),
}
WELL: Object = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [],
    "content": [{"type": "reasoning_text", "text": "Well."}],
}
REASONING: dict[str, list[Object]] = {
    "messages/thinking_tools.sse": [
        {"type": "thinking", "thinking": "I need the file.", "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3h"},
        text(12),
        CALL,
        CALL,
    ],
    "messages/interleaved.sse": [
        {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix"},
        text(6),
        {"type": "thinking", "thinking": "", "signature": "c2lnbmVk"},
        CALL,
    ],
    "messages/whole.json": [{"type": "thinking", "thinking": "Hm.", "signature": "s1"}, text(12), CALL],
    "responses/reasoning_tools.sse": [
        summary("rs_0", "**Looking**", "I need the file."),
        text(12),
        CALL,
        CALL,
    ],
    "responses/two_thoughts.sse": [
        summary("rs_0", "One", key="gA1"),
        CALL,
        summary("rs_2", key="gA2"),
        CALL,
    ],
    "responses/unstreamed_items.sse": [WELL, text(12), CALL],
    "responses/whole.json": [summary("rs_1", "Hm.", key="gA"), text(12), CALL],
}
"""What must come back with the results; of all others nothing must."""


def reader(name: str) -> ReplyReader:
    numbers, peer = itertools.count(1), Peer("p", "host", "m")
    decoder: Decoder = DECODERS[name.split("/")[0]](peer, lambda: f"made_{next(numbers)}")
    return ReplyReader(peer, decoder)


def answer(name: str, pieces: list[bytes]) -> Answer:
    return read_answer(reader(name), pieces)


def whole(name: str) -> Answer:
    return answer(name, [(STREAMS / name).read_bytes()])


def test_every_recording_has_its_row():
    kept = {f"{path.parent.name}/{path.name}" for folder in DECODERS for path in (STREAMS / folder).iterdir()}
    assert kept == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_whole(name):
    assert replace(whole(name), reasoning="") == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_reasoning_is_kept_where_calls_need_it(name):
    assert json.loads(whole(name).reasoning or "[]") == REASONING.get(name, [])


@pytest.mark.parametrize("name", EXPECTED)
def test_byte_by_byte(name):
    body = (STREAMS / name).read_bytes()
    assert answer(name, [body[i : i + 1] for i in range(len(body))]) == whole(name)


@settings(max_examples=150)
@given(st.data())
def test_any_cut_gives_the_same(data):
    name = data.draw(st.sampled_from(sorted(EXPECTED)))
    body = (STREAMS / name).read_bytes()
    cuts = sorted({0, len(body), *data.draw(st.lists(st.integers(0, len(body)), max_size=8))})
    assert answer(name, [body[a:b] for a, b in itertools.pairwise(cuts)]) == whole(name)


@settings(max_examples=150)
@given(st.data())
def test_a_stream_cut_off_is_never_taken_for_complete(data):
    name = data.draw(st.sampled_from(sorted(n for n in EXPECTED if EXPECTED[n].stop)))
    body = (STREAMS / name).read_bytes()
    got = answer(name, [body[: data.draw(st.integers(0, len(body)))]])
    if got.stop:
        assert replace(got, usage=None) == replace(whole(name), usage=None)
    else:
        assert got.failure in (Kind.STREAM_DROPPED, Kind.MALFORMED)
        assert EXPECTED[name].text.startswith(got.text)


@pytest.mark.parametrize("name", [name for name in EXPECTED if EXPECTED[name].calls])
def test_a_call_is_announced_once_and_completed_once(name):
    parts, _ = read_parts(reader(name), [(STREAMS / name).read_bytes()])
    started = [(p.index, p.id, p.name) for p in parts if isinstance(p, CallStartPart)]
    ended = [(p.index, p.call.id, p.call.name) for p in parts if isinstance(p, CallPart)]
    assert started == ended
    assert [index for index, _, _ in ended] == list(range(len(ended)))


def event(value: str) -> bytes:
    return b"data: " + value.encode() + b"\n\n"


OTHER_APIS = b'{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}'
ERROR = '{"type":"error","error":{"type":"%s","message":"m"}}'
UNNAMED = '{"type":"message","content":[{"type":"tool_use","id":"i"}],"stop_reason":"tool_use"}'
BROKEN = [
    ("messages", b"", Kind.STREAM_DROPPED),
    ("messages", b"<html>", Kind.MALFORMED),
    ("messages", OTHER_APIS, Kind.MALFORMED),
    ("messages", event("{nonsense}"), Kind.MALFORMED),
    ("messages", event("[DONE]"), Kind.MALFORMED),
    ("messages", event('{"type":"ping"}'), Kind.STREAM_DROPPED),
    ("messages", UNNAMED.encode(), Kind.MALFORMED),
    ("messages", event('{"error":{"message":"m","code":"invalid_api_key"}}'), Kind.AUTH),
    *(
        ("messages", event(ERROR % code), kind)
        for code, kind in {
            "authentication_error": Kind.AUTH,
            "permission_error": Kind.AUTH,
            "not_found_error": Kind.NOT_FOUND,
            "rate_limit_error": Kind.RATE_LIMIT,
            "overloaded_error": Kind.OVERLOADED,
            "api_error": Kind.SERVER,
            "timeout_error": Kind.TIMEOUT,
            "invalid_request_error": Kind.BAD_REQUEST,
            "request_too_large": Kind.BAD_REQUEST,
            "never_heard_of": Kind.SERVER,
        }.items()
    ),
    ("responses", b"", Kind.STREAM_DROPPED),
    ("responses", OTHER_APIS, Kind.MALFORMED),
    ("responses", event('{"type":"response.created"}'), Kind.STREAM_DROPPED),
    ("responses", event('{"type":"error","code":"server_error","message":"m"}'), Kind.SERVER),
    ("responses", event('{"type":"error","code":null,"message":"m"}'), Kind.SERVER),
    ("responses", event('{"type":"error","error":{"code":"rate_limit_exceeded"}}'), Kind.RATE_LIMIT),
    ("responses", event('{"type":"response.failed","response":{"status":"failed"}}'), Kind.SERVER),
    (
        "responses",
        event('{"type":"response.failed","response":{"error":{"code":"context_length_exceeded"}}}'),
        Kind.BAD_REQUEST,
    ),
]


@pytest.mark.parametrize(("api", "body", "kind"), BROKEN)
def test_broken(api, body, kind):
    assert answer(api, [body]) == Answer(failure=kind)


ODD_BLOCKS = (
    '{"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"no such block"}}',
    '{"type":"content_block_start","index":0,"content_block":null}',
    '{"type":"content_block_delta","index":0,"delta":null}',
    '{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"a"}}',
    '{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"\\ud83d"}}',
    '{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"\\ude00"}}',
    '{"type":"message_delta","delta":{"stop_reason":"brand_new"},"usage":null}',
)


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def test_arguments_that_nest_deep_are_kept_as_text():
    thought = f'{{"type":"redacted_thinking","data":{nested(400)}}}'
    block = f'{{"type":"tool_use","id":"i","name":"f","input":{nested(400)}}}'
    body = f'{{"type":"message","content":[{thought},{block}],"stop_reason":"tool_use"}}'
    got = answer("messages", [body.encode()])
    assert got.calls == (("i", "f", nested(400)),)
    assert got.stop == "tool_calls"


def test_odd_but_readable():
    assert answer("messages", [b"".join(map(event, ODD_BLOCKS))]) == Answer("a😀", stop="end")
