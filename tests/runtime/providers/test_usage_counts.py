"""What each API says of its cache: read apart from written, and both inside the input."""

import pytest

from runtime.providers.anthropic.events import MessagesDecoder
from runtime.providers.errors.failures import Peer
from runtime.providers.http.event_stream import ReplyReader
from runtime.providers.openai_chat.events import ChatDecoder
from runtime.providers.openai_responses.events import ResponsesDecoder
from runtime.values.model import UsagePart
from tests.runtime.providers.reading import read_parts
from tests.support.fakes_llm import sse, text_event

PEER = Peer("p", "h", "m")

MESSAGES = (
    {
        "type": "message_start",
        "message": {
            "usage": {"input_tokens": 7, "cache_creation_input_tokens": 200, "cache_read_input_tokens": 1000}
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "hi"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
    {"type": "message_stop"},
)
CHAT = (
    text_event("hi", "stop"),
    {
        "choices": [],
        "usage": {
            "prompt_tokens": 1207,
            "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 1000, "cache_write_tokens": 200},
        },
    },
)
RESPONSES = (
    {
        "type": "response.completed",
        "response": {
            "status": "completed",
            "output": [{"type": "message", "content": [{"type": "output_text", "text": "hi"}]}],
            "usage": {
                "input_tokens": 1207,
                "output_tokens": 5,
                "input_tokens_details": {"cached_tokens": 1000, "cache_write_tokens": 200},
            },
        },
    },
)


@pytest.mark.parametrize(
    ("decoder", "events"), [(MessagesDecoder, MESSAGES), (ChatDecoder, CHAT), (ResponsesDecoder, RESPONSES)]
)
def test_read_and_written_are_told_apart(decoder, events):
    reader = ReplyReader(PEER, decoder(PEER, lambda: "id"))
    parts, failure = read_parts(reader, list(sse(*events)))
    assert failure is None
    assert [part for part in parts if isinstance(part, UsagePart)] == [UsagePart(1207, 5, 1000, 200)]


def test_a_server_that_only_knows_hits_has_written_nothing():
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_cache_hit_tokens": 60}
    reader = ReplyReader(PEER, ChatDecoder(PEER, lambda: "id"))
    parts, _ = read_parts(reader, list(sse(text_event("hi", "stop"), {"choices": [], "usage": usage})))
    assert UsagePart(100, 5, 60, 0) in parts
