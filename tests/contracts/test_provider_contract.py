"""What every provider must do, whatever stands behind it: the same tests for each."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

import pytest
import trio

from runtime.errors import ProviderError, ProviderErrorKind
from runtime.model import (
    CallPart,
    CallStartPart,
    ModelRequest,
    Part,
    Segment,
    StopPart,
    StopReason,
    TextPart,
    ThoughtPart,
    UsagePart,
)
from runtime.ports import Provider
from runtime.providers.anthropic import AnthropicProvider
from runtime.providers.exchange import HttpProvider
from runtime.providers.openai import OpenAIProvider
from runtime.providers.openai_responses import ResponsesProvider
from runtime.providers.scripted import ScriptedProvider
from runtime.providers.scripted_format import Reply, Script, ScriptedCall, ScriptedFault
from runtime.providers.settings import ProviderSettings
from runtime.rows import Row, ToolCall, ToolSpec
from tests.fakes_llm import Canned, fake_server, sse, text_event

PARAMETERS = '{"type":"object","properties":{"path":{"type":"string"}}}'
READ_FILE = ToolSpec("read_file", "Read a file.", PARAMETERS)
ARGUMENTS = '{"path":"ä b.txt"}'


@dataclass(frozen=True)
class Plan:
    """What the provider shall be made to answer. status: an HTTP error instead."""

    pieces: tuple[str, ...] = ()
    thought: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    usage: tuple[int, int] = (10, 5)
    stop: StopReason = "end"
    ending: str = "stop"
    status: int = 0


def _scripted(plan: Plan) -> Reply:
    return Reply(
        pieces=plan.pieces,
        thought=plan.thought,
        calls=tuple(ScriptedCall(name, arguments, ident) for ident, name, arguments in plan.calls),
        usage=UsagePart(*plan.usage),
        stop=plan.stop,
        fault=ScriptedFault(plan.status) if plan.status else None,
        drop=plan.ending == "drop",
        hang=plan.ending == "hang",
        uses=None,
    )


@asynccontextmanager
async def scripted(plan: Plan) -> AsyncIterator[Provider]:
    yield ScriptedProvider(Script((_scripted(plan),)), name="one")


FINISH = {"end": "stop", "tool_calls": "tool_calls", "length": "length", "refusal": "content_filter"}


def _canned(plan: Plan) -> Canned:
    if plan.status:
        return Canned((b"{}",), status=plan.status)
    events: list[object] = []
    if plan.thought:
        events.append({"choices": [{"index": 0, "delta": {"reasoning_content": plan.thought}}]})
    events += map(text_event, plan.pieces)
    for index, (ident, name, arguments) in enumerate(plan.calls):
        function = {"name": name, "arguments": arguments}
        call = {"index": index, "id": ident, "type": "function", "function": function}
        events.append({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
    if plan.ending != "stop":
        return Canned(sse(*events, done=False), ending={"drop": "cut", "hang": "hang"}[plan.ending])
    events.append(text_event("", FINISH[plan.stop]))
    usage = {"prompt_tokens": plan.usage[0], "completion_tokens": plan.usage[1]}
    return Canned(sse(*events, {"choices": [], "usage": usage}))


def _bodies(plan: Plan, events: list[object], last: list[object]) -> Canned:
    if plan.status:
        return Canned((b"{}",), status=plan.status)
    if plan.ending != "stop":
        return Canned(sse(*events, done=False), ending={"drop": "cut", "hang": "hang"}[plan.ending])
    return Canned(sse(*events, *last, done=False))


MESSAGES_STOPS = {"end": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "refusal": "refusal"}


def _messages(plan: Plan) -> Canned:
    deltas: list[tuple[dict[str, object], list[dict[str, object]]]] = []
    if plan.thought:
        deltas.append(({"type": "thinking"}, [{"type": "thinking_delta", "thinking": plan.thought}]))
    if plan.pieces:
        deltas.append(({"type": "text"}, [{"type": "text_delta", "text": piece} for piece in plan.pieces]))
    for ident, name, arguments in plan.calls:
        start: dict[str, object] = {"type": "tool_use", "id": ident, "name": name, "input": {}}
        deltas.append((start, [{"type": "input_json_delta", "partial_json": arguments}]))
    events: list[object] = [
        {"type": "message_start", "message": {"usage": {"input_tokens": plan.usage[0], "output_tokens": 1}}}
    ]
    for index, (block, inner) in enumerate(deltas):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in inner]
    stop = {"stop_reason": MESSAGES_STOPS[plan.stop]}
    usage = {"output_tokens": plan.usage[1]}
    last: list[object] = [{"type": "message_delta", "delta": stop, "usage": usage}, {"type": "message_stop"}]
    return _bodies(plan, events, last)


RESPONSES_ENDS = {"length": "max_output_tokens", "refusal": "content_filter"}


def _responses(plan: Plan) -> Canned:
    events: list[object] = []
    if plan.thought:
        told = {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": plan.thought}
        events.append(told)
    events += [
        {"type": "response.output_text.delta", "output_index": 1, "delta": piece} for piece in plan.pieces
    ]
    for place, (ident, name, arguments) in enumerate(plan.calls, 2):
        item = {"type": "function_call", "call_id": ident, "name": name, "arguments": ""}
        events.append({"type": "response.output_item.added", "output_index": place, "item": item})
        done = {**item, "arguments": arguments}
        events.append({"type": "response.output_item.done", "output_index": place, "item": done})
    reason = RESPONSES_ENDS.get(plan.stop)
    usage = {"input_tokens": plan.usage[0], "output_tokens": plan.usage[1]}
    response = {"usage": usage, "incomplete_details": {"reason": reason} if reason else None}
    return _bodies(plan, events, [{"type": "response.completed", "response": response}])


@asynccontextmanager
async def _over_http(provider: type[HttpProvider], kind: str, answer: Canned) -> AsyncIterator[Provider]:
    async with fake_server(answer) as server:
        model = provider(ProviderSettings("one", kind, server.base_url), jitter=lambda: 0.0)
        try:
            yield model
        finally:
            await model.aclose()


Harness = Callable[[Plan], AbstractAsyncContextManager[Provider]]


def openai(plan: Plan) -> AbstractAsyncContextManager[Provider]:
    return _over_http(OpenAIProvider, "openai", _canned(plan))


def openai_responses(plan: Plan) -> AbstractAsyncContextManager[Provider]:
    return _over_http(ResponsesProvider, "openai_responses", _responses(plan))


def anthropic(plan: Plan) -> AbstractAsyncContextManager[Provider]:
    return _over_http(AnthropicProvider, "anthropic", _messages(plan))


@pytest.fixture(params=[scripted, openai, openai_responses, anthropic])
def make(request) -> Harness:
    harness: Harness = request.param
    return harness


def request(*rows: Row) -> ModelRequest:
    return ModelRequest(
        "m", (Segment((Row("system", "s"),)), Segment(rows or (Row("user", "hi"),))), (READ_FILE,)
    )


async def collect(provider: Provider, asked: ModelRequest | None = None) -> list[Part]:
    parts: list[Part] = []
    with trio.fail_after(10):
        async with provider.stream(asked or request()) as batches:
            async for batch in batches:
                assert len(batch) > 0
                parts += batch
    return parts


def text(parts: list[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextPart))


async def test_name(make):
    async with make(Plan(("x",))) as provider:
        assert provider.name == "one"


async def test_text_thought_usage_stop_in_order(make):
    async with make(Plan(("Grüße ", "an ", "alle 🎉"), thought="hm")) as provider:
        parts = await collect(provider)
    assert text(parts) == "Grüße an alle 🎉"
    assert parts[0] == ThoughtPart("hm")
    assert parts[-2:] == [UsagePart(10, 5), StopPart("end")]
    assert sum(isinstance(part, StopPart) for part in parts) == 1


@pytest.mark.parametrize("stop", ["end", "length", "refusal"])
async def test_stop_reasons(make, stop):
    async with make(Plan(("x",), stop=stop)) as provider:
        assert (await collect(provider))[-1] == StopPart(stop)


async def test_calls_are_announced_and_then_complete(make):
    calls = (("c1", "read_file", ARGUMENTS), ("c2", "list_dir", "{}"))
    async with make(Plan(("Look:",), calls=calls, stop="tool_calls")) as provider:
        parts = await collect(provider)
    assert [(p.index, p.id, p.name) for p in parts if isinstance(p, CallStartPart)] == [
        (0, "c1", "read_file"),
        (1, "c2", "list_dir"),
    ]
    assert [p for p in parts if isinstance(p, CallPart)] == [
        CallPart(0, ToolCall("c1", "read_file", ARGUMENTS)),
        CallPart(1, ToolCall("c2", "list_dir", "{}")),
    ]
    assert parts[-1] == StopPart("tool_calls")


async def test_a_request_with_every_kind_of_row_is_taken(make):
    rows = (
        Row("user", "read it"),
        Row("assistant", "", (ToolCall("c1", "read_file", ARGUMENTS), ToolCall("c2", "read_file", "{}"))),
        Row("tool", "", tool_call_id="c1"),
        Row("tool", "text", tool_call_id="c2"),
        Row("assistant", "done"),
        Row("user", "[SOP: x]", origin="runtime"),
    )
    async with make(Plan(("ok",))) as provider:
        assert text(await collect(provider, request(*rows))) == "ok"


async def test_a_dropped_stream_keeps_what_came(make):
    got: list[Part] = []
    async with make(Plan(("half ", "an"), ending="drop")) as provider:
        with pytest.raises(ProviderError) as caught:
            await gather(provider, got)
    assert caught.value.kind is ProviderErrorKind.STREAM_DROPPED
    assert caught.value.retryable
    assert text(got) == "half an"


async def gather(provider: Provider, into: list[Part]) -> None:
    with trio.fail_after(10):
        async with provider.stream(request()) as batches:
            async for batch in batches:
                into += batch


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, ProviderErrorKind.AUTH), (400, ProviderErrorKind.BAD_REQUEST), (404, ProviderErrorKind.NOT_FOUND)],
)
async def test_refusals_come_on_entry(make, status, kind):
    entered = False
    async with make(Plan(status=status)) as provider:
        with pytest.raises(ProviderError) as caught:
            async with provider.stream(request()):
                entered = True
    assert not entered
    assert (caught.value.kind, caught.value.status, caught.value.retryable) == (kind, status, False)
    assert '"one"' in str(caught.value)
    json.dumps(caught.value.data)


async def test_cancelling_a_stream_that_hangs(make):
    async with make(Plan(("a",), ending="hang")) as provider:
        got: list[Part] = []
        with trio.fail_after(10):
            with trio.move_on_after(0.2) as scope:
                async with provider.stream(request()) as batches:
                    async for batch in batches:
                        got += batch
            assert scope.cancelled_caught
            assert text(got) == "a"


async def test_leaving_early(make):
    async with make(Plan(tuple("abcdef"), ending="hang")) as provider:
        with trio.fail_after(10):
            for _ in range(3):
                async with provider.stream(request()) as batches:
                    async for _ in batches:
                        break


async def test_streams_side_by_side(make):
    results: list[str] = []

    async def one(provider: Provider) -> None:
        results.append(text(await collect(provider)))

    async with make(Plan(("a", "b", "c"))) as provider, trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(one, provider)
    assert results == ["abc"] * 8


async def test_closing_twice_is_fine(make):
    async with make(Plan(("x",))) as provider:
        await collect(provider)
        await provider.aclose()
        await provider.aclose()
