"""A guided reply is shown as it comes, whatever the pieces are, and a call comes out whole."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.providers.errors.failures import Peer
from runtime.providers.local.guided_replies import GuidedDecoder
from runtime.values.model import CallPart, CallStartPart, Part, StopPart, TextPart
from tests.runtime.providers.local.fake_llama import text_event

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def read(*pieces: str, finish: str = "stop") -> tuple[list[list[Part]], list[Part]]:
    """What each piece gave, and what the end gave."""
    decoder = GuidedDecoder(Peer("one"), lambda: "id")
    given = [decoder.feed([json.dumps(text_event(piece)).encode()]) for piece in pieces]
    given.append(decoder.feed([json.dumps(text_event("", finish)).encode()]))
    end = decoder.end()
    assert decoder.failure is None
    return given, end


def text(given: list[list[Part]]) -> str:
    return "".join(part.text for parts in given for part in parts if isinstance(part, TextPart))


@given(TEXTS, st.booleans(), st.lists(st.integers(0, 120), max_size=8), st.sampled_from([None, 1]))
def test_an_answer_in_any_pieces(answer: str, as_ascii: bool, cuts: list[int], indent: int | None):
    whole = json.dumps({"answer": answer}, ensure_ascii=as_ascii, indent=indent)
    ends = sorted({min(cut, len(whole)) for cut in cuts} | {len(whole)})
    pieces = [whole[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    given, end = read(*pieces)
    assert text(given) == answer
    assert end == [StopPart("end")]


def test_text_is_shown_before_the_object_ends():
    given, _ = read('{ "answer" : "One ', "two\\", "n", 'three" }')
    assert [text([parts]) for parts in given] == ["One ", "two", "\n", "three", ""]


@pytest.mark.parametrize("arguments", [{"path": 'a "b"\\.txt'}, {}, {"n": [1, {"x": None}], "ü": "ü"}])
def test_a_call_is_announced_by_its_name(arguments: dict[str, object]):
    call = json.dumps({"tool": "read_file", "arguments": arguments})
    at = call.index("arguments")
    given, end = read('{"tool"', call[7:at], call[at:])
    assert given[:3] == [[], [CallStartPart(0, "id", "read_file")], []]
    (part, stop) = end
    assert isinstance(part, CallPart)
    assert (part.call.id, part.call.name, json.loads(part.call.arguments)) == ("id", "read_file", arguments)
    assert stop == StopPart("tool_calls")


def test_a_call_that_was_cut_off_is_none():
    given, end = read('{"tool": "read_file", "arguments": {"pa', finish="length")
    assert text(given) == ""
    assert end == [StopPart("length")]


def test_an_answer_that_was_cut_off_keeps_its_text():
    given, end = read('{"answer": "half of \\ud83d', finish="length")
    assert text(given) == "half of "
    assert end == [StopPart("length")]


def test_text_without_any_object_is_the_answer():
    given, end = read("Just ", 'text with "quotes" {}')
    assert text(given) == 'Just text with "quotes" {}'
    assert end == [StopPart("end")]


def test_a_thought_goes_past_the_guide():
    decoder = GuidedDecoder(Peer("one"), lambda: "id")
    thought = {"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}}]}
    parts = decoder.feed([json.dumps(thought).encode(), json.dumps(text_event('{"answer":"a"}')).encode()])
    assert [type(part).__name__ for part in parts] == ["ThoughtPart", "TextPart"]
