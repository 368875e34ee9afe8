"""Answers of Ollama's own API, whole and cut anywhere, give the same parts."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.providers.errors.failures import Peer
from runtime.providers.ollama.events import LineReader, OllamaDecoder
from runtime.values.errors import ProviderErrorKind
from runtime.values.model import CallPart, CallStartPart
from tests.runtime.providers.reading import Answer, read_answer, read_parts

STREAMS = Path(__file__).parents[2] / "data" / "streams" / "ollama"
Kind = ProviderErrorKind
EXPECTED = {
    "text.ndjson": Answer("Hello, «world» 🌍", usage=(26, 9, 0), stop="end"),
    "thinking_tools.ndjson": Answer(
        "Let me look.",
        "I need the file.",
        (("made_1", "read_file", '{"path":"a.txt"}'), ("made_2", "list_dir", "{}")),
        (200, 31, 0),
        "tool_calls",
    ),
    "tools_with_ids.ndjson": Answer(
        calls=(
            ("call_ab12", "read_file", '{"path":"ä b.txt","depth":2}'),
            ("call_cd34", "read_file", '{"path":"b.txt"}'),
        ),
        usage=(90, 40, 0),
        stop="tool_calls",
    ),
    "length.ndjson": Answer("Once upon", usage=(61, 451, 0), stop="length"),
    "error.ndjson": Answer("Half an", failure=Kind.SERVER),
    "load.ndjson": Answer(failure=Kind.STREAM_DROPPED),
    "whole.json": Answer(
        "All at once.", "Hm.", (("made_1", "list_dir", '{"path":"."}'),), (0, 4, 0), "tool_calls"
    ),
}
THOUGHTS = {"thinking_tools.ndjson": "I need the file.", "whole.json": "Hm."}
"""What goes back with the results."""


def reader() -> LineReader:
    numbers, peer = itertools.count(1), Peer("p", "host", "m")
    return LineReader(peer, OllamaDecoder(peer, lambda: f"made_{next(numbers)}"))


def answer(pieces: list[bytes]) -> Answer:
    return read_answer(reader(), pieces)


def whole(name: str) -> Answer:
    return answer([(STREAMS / name).read_bytes()])


def test_every_recording_has_its_row():
    assert {path.name for path in STREAMS.iterdir()} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_whole(name):
    assert replace(whole(name), reasoning="") == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_thoughts_are_kept_where_calls_come_of_them(name):
    kept = [{"type": "message.thinking", "thinking": THOUGHTS[name]}] if name in THOUGHTS else []
    assert json.loads(whole(name).reasoning or "[]") == kept


@pytest.mark.parametrize("name", EXPECTED)
def test_byte_by_byte(name):
    body = (STREAMS / name).read_bytes()
    assert answer([body[i : i + 1] for i in range(len(body))]) == whole(name)


@settings(max_examples=100)
@given(st.data())
def test_any_cut_gives_the_same(data):
    name = data.draw(st.sampled_from(sorted(EXPECTED)))
    body = (STREAMS / name).read_bytes()
    cuts = sorted({0, len(body), *data.draw(st.lists(st.integers(0, len(body)), max_size=8))})
    assert answer([body[a:b] for a, b in itertools.pairwise(cuts)]) == whole(name)


@settings(max_examples=100)
@given(st.data())
def test_a_stream_cut_off_is_never_taken_for_complete(data):
    name = data.draw(st.sampled_from(sorted(n for n in EXPECTED if EXPECTED[n].stop)))
    body = (STREAMS / name).read_bytes()
    got = answer([body[: data.draw(st.integers(0, len(body)))]])
    if got.stop:
        assert got == whole(name)
    else:
        assert got.failure in (Kind.STREAM_DROPPED, Kind.MALFORMED)
        assert EXPECTED[name].text.startswith(got.text)
        assert not got.calls, "half of what was asked for is not run"


@pytest.mark.parametrize("name", [name for name in EXPECTED if EXPECTED[name].calls])
def test_a_call_is_announced_once_and_completed_once(name):
    parts, _ = read_parts(reader(), [(STREAMS / name).read_bytes()])
    started = [(p.index, p.id, p.name) for p in parts if isinstance(p, CallStartPart)]
    assert started == [(p.index, p.call.id, p.call.name) for p in parts if isinstance(p, CallPart)]
    assert [index for index, _, _ in started] == list(range(len(started)))


def said(content: str = "a", **more: object) -> bytes:
    return json.dumps({"message": {"role": "assistant", "content": content}, **more}).encode() + b"\n"


DONE = said("", done=True, done_reason="stop")
BROKEN = {
    b"": Kind.STREAM_DROPPED,
    b"\n\n": Kind.STREAM_DROPPED,
    b"<html>": Kind.MALFORMED,
    b'data: {"choices":[]}\n\n': Kind.MALFORMED,
    b"{nonsense}\n": Kind.MALFORMED,
    b"[1]\n": Kind.MALFORMED,
    b'{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}': Kind.STREAM_DROPPED,
    b'{"error":"model \'x\' not found, try pulling it first"}\n': Kind.SERVER,
    b'{"error":{"code":429,"message":"slow down"}}\n': Kind.RATE_LIMIT,
    b'{"message":{"tool_calls":[{"function":{"arguments":{}}}]},"done":true}\n': Kind.MALFORMED,
    b'{"message":{"tool_calls":[{"function":{"name":"f","argum\n': Kind.MALFORMED,
    b'{"message":{"tool_calls":[{"function":{"name":"f","argum': Kind.STREAM_DROPPED,
    b"[" * 100_000: Kind.MALFORMED,
    b'{"a":' * 100_000 + b"\n": Kind.MALFORMED,
    b'{"message":null,"done":true,"done_reason":"unload"}\n': Kind.STREAM_DROPPED,
}


@pytest.mark.parametrize("body", BROKEN)
def test_broken(body):
    assert answer([body]) == Answer(failure=BROKEN[body])


def test_what_comes_behind_the_last_line_is_not_read():
    assert answer([said() + DONE + said("b") + b"garbage"]) == Answer("a", stop="end")


def test_a_line_without_an_end_is_given_up(monkeypatch):
    monkeypatch.setattr("runtime.providers.http.event_stream.SseSplitter.__init__.__defaults__", (1000,))
    assert answer([said()[:-1] + b" " * 2000]).failure is Kind.MALFORMED


ODD = [
    ({"tool_calls": [7, None, {"function": None}]}, Kind.MALFORMED),
    ({"tool_calls": "none"}, None),
    ({"content": None, "thinking": 7}, None),
    ({"content": ["x"]}, None),
]


@pytest.mark.parametrize(("message", "failure"), ODD)
def test_odd_messages(message, failure):
    body = json.dumps({"message": message}).encode() + b"\n"
    got = answer([body + DONE])
    assert (got.text, got.calls, got.failure) == ("", (), failure)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (None, "{}"),
        ("", "{}"),
        ({}, "{}"),
        ("{broken", "{broken"),
        ([1], "[1]"),
        ({"a": "\ud83d"}, '{"a":"\\ud83d"}'),
    ],
)
def test_arguments_are_kept_as_the_model_wrote_them(given, kept):
    call = {"function": {"name": "f", "arguments": given}}
    body = json.dumps({"message": {"tool_calls": [call]}}).encode() + b"\n"
    ((_, _, arguments),) = answer([body + DONE]).calls
    assert arguments in (kept, '{"a":"�"}')


def test_counts_that_cannot_be_are_not_believed():
    body = said("", done=True, done_reason="stop", prompt_eval_count=10**12, eval_count=-1)
    assert answer([said() + body]).usage is None
