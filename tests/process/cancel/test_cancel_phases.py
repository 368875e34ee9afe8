"""Cancel in each phase of asking a model, for each wire: `cancelled` at once, and the next prompt works."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
import trio

from tests.process.homes import Home
from tests.process.models import answers
from tests.support.fakes_llm import Canned, fake_server, sse, text_event
from tests.support.wire_order import Json
from tests.support.wire_talk import Talk

AT_ONCE = 0.5
"""Seconds from the cancel to the answer, on the client's side of the pipes."""


def events(*values: Json) -> tuple[bytes, ...]:
    """Events that carry their type in front, as the newer APIs send them."""
    return tuple(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in values)


def lines(*values: Json) -> tuple[bytes, ...]:
    return tuple(json.dumps(one).encode() + b"\n" for one in values)


def chat_call(arguments: str) -> Json:
    delta = {"index": 0, "id": "c", "type": "function", "function": {"name": "x", "arguments": arguments}}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [delta]}}]}


MESSAGE_START: Json = {
    "type": "message_start",
    "message": {"id": "m", "role": "assistant", "content": [], "usage": {"input_tokens": 1}},
}
WIRES: dict[str, tuple[tuple[bytes, ...], tuple[bytes, ...], tuple[bytes, ...]]] = {
    "openai": (
        sse(text_event("half"), done=False),
        sse(chat_call('{"a'), done=False),
        sse(text_event("yes"), text_event("", "stop")),
    ),
    "anthropic": (
        events(
            MESSAGE_START,
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "half"}},
        ),
        events(
            MESSAGE_START,
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "tool_use", "id": "c", "name": "x", "input": {}},
            },
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": '{"a'},
            },
        ),
        events(
            MESSAGE_START,
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "yes"}},
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": "end_turn"},
                "usage": {"input_tokens": 1, "output_tokens": 1},
            },
            {"type": "message_stop"},
        ),
    ),
    "openai_responses": (
        events({"type": "response.output_text.delta", "output_index": 0, "item_id": "i", "delta": "half"}),
        events(
            {
                "type": "response.output_item.added",
                "output_index": 0,
                "item": {"type": "function_call", "id": "i", "call_id": "c", "name": "x", "arguments": ""},
            },
            {
                "type": "response.function_call_arguments.delta",
                "output_index": 0,
                "item_id": "i",
                "delta": '{"a',
            },
        ),
        events(
            {"type": "response.output_text.delta", "output_index": 0, "item_id": "i", "delta": "yes"},
            {"type": "response.completed", "response": {"usage": {"input_tokens": 1, "output_tokens": 1}}},
        ),
    ),
    "ollama": (
        lines({"message": {"role": "assistant", "content": "half"}, "done": False}),
        lines({"message": {"role": "assistant", "thinking": "hm"}, "done": False}),
        lines(
            {"message": {"role": "assistant", "content": "yes"}, "done": False},
            {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"},
        ),
    ),
}
BUSY = Canned(
    (b"{}",), status=429, headers=("retry-after: 15",), content_type="application/json", together=True
)


def model_at(home: Home, kind: str, address: str) -> None:
    home.configure(f'kind = "{kind}"\nmodel = "m"\nbase_url = {json.dumps(address)}\n')


async def cancelled_at_once(talk: Talk, asked: int) -> None:
    started = trio.current_time()
    await talk.cancel()
    turn = await talk.end_of(asked)
    assert turn.stop == "cancelled"
    assert trio.current_time() - started < AT_ONCE


async def works(talk: Talk) -> None:
    turn = await talk.turn("go on")
    assert (turn.stop, turn.text) == ("end_turn", "yes")


@pytest.mark.parametrize("kind", WIRES)
async def test_while_it_streams_and_while_it_waits(home: Home, kind: str) -> None:
    """Before the first byte, in the text, in the arguments of a call, and while the same is asked again."""
    half, called, whole = WIRES[kind]
    media = "application/x-ndjson" if kind == "ollama" else "text/event-stream"
    phases = [
        *(Canned(chunks, content_type=media, ending="hang") for chunks in ((), half, called)),
        BUSY,
    ]
    async with fake_server(*phases, Canned(whole, content_type=media)) as server:
        model_at(home, kind, server.base_url)
        async with home.talk() as talk:
            for number in range(len(phases)):
                asked = await talk.ask("go")
                with trio.fail_after(10):
                    while len(server.asked) <= number:  # noqa: ASYNC110 - the fake server has no event for it
                        await trio.sleep(0.01)
                await trio.sleep(0.2)
                await cancelled_at_once(talk, asked)
            await works(talk)
    assert len(server.asked) == len(phases) + 1


@contextmanager
def full_listener() -> Iterator[str]:
    """An address whose connections are never taken: to connect there takes for ever."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(8):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"


async def test_while_it_connects(home: Home) -> None:
    """In a session of its own: the settings are read anew for each."""
    async with fake_server(answers("yes")) as server:
        model_at(home, "openai", server.base_url)
        async with home.talk() as talk:
            await works(talk)
            with full_listener() as address:
                model_at(home, "openai", address)
                other = await Talk.new(talk.agent, home.work)
                asked = await other.ask("go")
                await trio.sleep(0.5)
                await cancelled_at_once(other, asked)
            await works(talk)
