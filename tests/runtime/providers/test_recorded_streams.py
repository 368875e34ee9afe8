"""Answers as real servers send them, whole and cut anywhere, give the same parts."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.providers.errors.failures import Peer
from runtime.providers.http.event_stream import ReplyReader
from runtime.providers.openai_chat.events import ChatDecoder
from runtime.values.errors import ProviderErrorKind
from runtime.values.model import CallPart, CallStartPart, Part, StopPart, TextPart, UsagePart
from runtime.values.rows import ToolCall
from tests.runtime.providers.reading import Answer, read_answer, read_parts

STREAMS = Path(__file__).parents[2] / "data" / "streams"


def call(ident: str, name: str, arguments: str) -> tuple[str, str, str]:
    return ident, name, arguments


READ_A, READ_B = '{"path":"a.txt"}', '{"path":"b.txt"}'
EXPECTED = {
    "openai_text.sse": Answer(
        "The capital of France is Paris — «ville lumière» 🗼.", usage=(1420, 11, 1280), stop="end"
    ),
    "openai_tools.sse": Answer(
        calls=(call("call_a1", "read_file", READ_A), call("call_b2", "list_dir", "{}")),
        usage=(90, 40, 0),
        stop="tool_calls",
    ),
    "ollama_tools.sse": Answer(
        thought="I should look first.",
        calls=(call("call_8kx", "read_file", READ_A), call("call_9zz", "read_file", READ_B)),
        usage=(200, 31, 0),
        stop="tool_calls",
    ),
    "vllm_reasoning.sse": Answer("42", "Think hard.", usage=(12, 8, 0), stop="end"),
    "vllm_error.sse": Answer("Half an", failure=ProviderErrorKind.SERVER),
    "llamacpp_length.sse": Answer("Once upon", usage=(31, 2, 0), stop="length"),
    "lmstudio_tools.sse": Answer(
        "Looking.", calls=(call("365174485", "search_text", '{"query":"x"}'),), stop="tool_calls"
    ),
    "openrouter_text.sse": Answer("Yes.", "Hm.", usage=(8, 4, 0), stop="end"),
    "openrouter_error.sse": Answer("Par", failure=ProviderErrorKind.SERVER),
    "plain_calls.sse": Answer(
        calls=(call("made_1", "read_file", READ_A), call("made_2", "list_dir", "{}")), stop="tool_calls"
    ),
    "mistral_thinking.sse": Answer("So be it", "Well", usage=(5, 3, 0), stop="end"),
    "function_call.sse": Answer(calls=(call("made_1", "list_dir", '{"path":"."}'),), stop="tool_calls"),
    "no_finish_reason.sse": Answer("Short.", stop="end"),
    "tight_events.sse": Answer("no empty lines", stop="end"),
    "content_filter.sse": Answer("I", stop="refusal"),
    "repeated_names.sse": Answer(
        calls=(call("c1", "read_file", '{"path":1}'), call("c2", "read_file", "{}")), stop="tool_calls"
    ),
    "whole_answer.json": Answer(
        "All at once.", calls=(call("w1", "list_dir", "{}"),), usage=(3, 4, 0), stop="tool_calls"
    ),
}


def reader() -> ReplyReader:
    numbers = itertools.count(1)
    peer = Peer("p", "host", "m")
    return ReplyReader(peer, ChatDecoder(peer, lambda: f"made_{next(numbers)}"))


def parts_of(pieces: list[bytes]) -> tuple[list[Part], ProviderErrorKind | None]:
    return read_parts(reader(), pieces)


def answer(pieces: list[bytes]) -> Answer:
    return read_answer(reader(), pieces)


def test_every_recording_has_its_row():
    assert {path.name for path in STREAMS.iterdir() if path.is_file()} - {"README.md"} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_whole(name):
    assert answer([(STREAMS / name).read_bytes()]) == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_byte_by_byte(name):
    body = (STREAMS / name).read_bytes()
    assert answer([body[i : i + 1] for i in range(len(body))]) == EXPECTED[name]


@settings(max_examples=150)
@given(st.data())
def test_any_cut_gives_the_same(data):
    name = data.draw(st.sampled_from(sorted(EXPECTED)))
    body = (STREAMS / name).read_bytes()
    cuts = sorted({0, len(body), *data.draw(st.lists(st.integers(0, len(body)), max_size=8))})
    assert answer([body[a:b] for a, b in itertools.pairwise(cuts)]) == EXPECTED[name]


@settings(max_examples=150)
@given(st.data())
def test_a_stream_cut_off_is_never_taken_for_complete(data):
    name = data.draw(st.sampled_from(sorted(n for n in EXPECTED if EXPECTED[n].stop)))
    body = (STREAMS / name).read_bytes()
    cut = data.draw(st.integers(0, len(body)))
    got = answer([body[:cut]])
    if got.stop:
        # Only what follows the finish reason may be missing.
        assert (got.text, got.thought, got.calls) == (
            EXPECTED[name].text,
            EXPECTED[name].thought,
            EXPECTED[name].calls,
        )
    else:
        assert got.failure in (
            ProviderErrorKind.STREAM_DROPPED,
            ProviderErrorKind.MALFORMED,
            EXPECTED[name].failure,
        )
        assert EXPECTED[name].text.startswith(got.text)


def test_neighbouring_pieces_of_a_read_are_one_part():
    parts, _ = parts_of([(STREAMS / "openai_text.sse").read_bytes()])
    assert [type(part) for part in parts] == [TextPart, UsagePart, StopPart]


def test_a_call_is_announced_once_and_completed_once():
    for name in ("openai_tools.sse", "ollama_tools.sse", "repeated_names.sse", "plain_calls.sse"):
        parts, _ = parts_of([(STREAMS / name).read_bytes()])
        started = [(p.index, p.id, p.name) for p in parts if isinstance(p, CallStartPart)]
        ended = [(p.index, p.call.id, p.call.name) for p in parts if isinstance(p, CallPart)]
        assert started == ended
        assert len({index for index, _, _ in ended}) == len(ended) == 2


def event(text: str) -> bytes:
    return b"data: " + text.encode() + b"\n\n"


def delta(inner: str) -> bytes:
    return event('{"choices":[{"index":0,"delta":' + inner + "}]}")


DONE = event("[DONE]")
ODD = {
    "lone surrogates": (
        delta('{"content":"a\\ud83d"}') + delta('{"content":"\\ude00b\\ud800"}'),
        "a😀b\ufffd",
    ),
    "bad utf-8": (b'data: {"choices":[{"delta":{"content":"a\xffb"}}]}\n\n', "a\ufffdb"),
    "other choices": (
        event('{"choices":[{"index":1,"delta":{"content":"no"}}]}') + delta('{"content":"yes"}'),
        "yes",
    ),
    "byte order mark": (b"\xef\xbb\xbf" + delta('{"content":"x"}'), "x"),
    "null choices": (event('{"choices":null,"usage":null}') + delta('{"content":"x"}'), "x"),
    "null delta": (event('{"choices":[{"delta":null}]}') + delta('{"content":"x"}'), "x"),
    "no space after the colon": (b'data:{"choices":[{"delta":{"content":"x"}}]}\n\n', "x"),
    "other fields": (b"event: m\nid: 1\nretry: 3\n" + delta('{"content":"x"}'), "x"),
    "a data field over two lines": (b'data: {"choices":\ndata: [{"delta":{"content":"x"}}]}\n\n', "x"),
    "refusal": (delta('{"refusal":"No."}'), "No."),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_but_readable(name):
    body, text = ODD[name]
    got = answer([body + DONE])
    assert (got.text, got.failure) == (text, None)
    assert got.stop == ("refusal" if name == "refusal" else "end")


BROKEN = {
    b"": ProviderErrorKind.STREAM_DROPPED,
    b"   \n": ProviderErrorKind.STREAM_DROPPED,
    b"<html>hello</html>": ProviderErrorKind.MALFORMED,
    b"404 page not found": ProviderErrorKind.MALFORMED,
    b": only comments\n\n": ProviderErrorKind.STREAM_DROPPED,
    b'{"choices":[{"message":{"content":"cut': ProviderErrorKind.STREAM_DROPPED,
    event("{nonsense}"): ProviderErrorKind.MALFORMED,
    event("[1]"): ProviderErrorKind.MALFORMED,
    event('"text"'): ProviderErrorKind.MALFORMED,
    delta('{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}') + DONE: ProviderErrorKind.MALFORMED,
    event('{"error":{"message":"slow","type":"rate_limit_error"}}'): ProviderErrorKind.RATE_LIMIT,
    event('{"error":"out of memory"}'): ProviderErrorKind.SERVER,
    b'{"error":{"message":"no","code":"invalid_api_key"}}': ProviderErrorKind.AUTH,
    event('{"object":"error","message":"too long","code":400}'): ProviderErrorKind.BAD_REQUEST,
}


@pytest.mark.parametrize("body", BROKEN)
def test_broken(body):
    assert answer([body]) == Answer(failure=BROKEN[body])


def test_an_event_without_end_is_refused():
    reply = reader()
    for _ in range(40):
        reply.feed(b"data: " + b"x" * 2**20)
        if reply.failure:
            break
    assert reply.failure
    assert reply.failure.kind is ProviderErrorKind.MALFORMED


def test_parts_before_an_error_in_the_same_read_are_kept():
    parts, failure = parts_of([(STREAMS / "vllm_error.sse").read_bytes()])
    assert parts == [TextPart("Half an")]
    assert failure is ProviderErrorKind.SERVER


def test_arguments_stay_as_they_were_received():
    odd = '{ "a" :1,  "a":2 }'
    body = delta('{"tool_calls":[{"index":0,"id":"i","function":{"name":"f","arguments":"{ \\"a\\" :1,"}}]}')
    body += delta('{"tool_calls":[{"index":0,"function":{"arguments":"  \\"a\\":2 }"}}]}') + DONE
    parts, _ = parts_of([body])
    assert CallPart(0, ToolCall("i", "f", odd)) in parts
