"""What every provider must do, whatever stands behind it: the same tests for each."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import pytest
import trio

from runtime.ports import Provider
from runtime.values.errors import ProviderError, ProviderErrorKind
from runtime.values.model import (
    CallPart,
    CallStartPart,
    ModelRequest,
    Part,
    Segment,
    StopPart,
    TextPart,
    ThoughtPart,
    UsagePart,
)
from runtime.values.rows import Row, ToolCall, ToolSpec
from tests.contracts.local_plan import local
from tests.contracts.plans import WIRES, Plan, over_http, scripted

PARAMETERS = '{"type":"object","properties":{"path":{"type":"string"}}}'
READ_FILE = ToolSpec("read_file", "Read a file.", PARAMETERS)
ARGUMENTS = '{"path":"ä b.txt"}'

Harness = Callable[[Plan], AbstractAsyncContextManager[Provider]]
HARNESSES: dict[str, Harness] = {
    "scripted": scripted,
    "local": local,
    **{kind: partial(over_http, kind) for kind in WIRES},
}
NEVER_REFUSES = {kind for kind, wire in WIRES.items() if not wire.refuses}
"""Kinds whose API has no word for it."""


@pytest.fixture(params=HARNESSES)
def kind(request) -> str:
    return str(request.param)


@pytest.fixture
def make(kind: str) -> Harness:
    return HARNESSES[kind]


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
async def test_stop_reasons(make, kind, stop):
    async with make(Plan(("x",), stop=stop)) as provider:
        last = (await collect(provider))[-1]
    assert isinstance(last, StopPart)
    assert last.reason == ("end" if stop == "refusal" and kind in NEVER_REFUSES else stop)


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
    ("status", "fault"),
    [(401, ProviderErrorKind.AUTH), (400, ProviderErrorKind.BAD_REQUEST), (404, ProviderErrorKind.NOT_FOUND)],
)
async def test_refusals_come_on_entry(make, status, fault):
    entered = False
    async with make(Plan(status=status)) as provider:
        with pytest.raises(ProviderError) as caught:
            async with provider.stream(request()):
                entered = True
    assert not entered
    assert (caught.value.kind, caught.value.status, caught.value.retryable) == (fault, status, False)
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
