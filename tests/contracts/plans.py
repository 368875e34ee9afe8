"""What a model shall answer, and the bytes in which each API says it: for the tests of all kinds."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from runtime.ports import Provider
from runtime.providers.anthropic.provider import AnthropicProvider
from runtime.providers.http.client import HttpProvider
from runtime.providers.ollama.provider import OllamaProvider
from runtime.providers.openai_chat.provider import OpenAIProvider
from runtime.providers.openai_responses.provider import ResponsesProvider
from runtime.providers.scripted.provider import ScriptedProvider
from runtime.providers.scripted.script import Reply, Script, ScriptedCall, ScriptedFault
from runtime.providers.settings import ProviderSettings
from runtime.values.model import StopReason, UsagePart
from tests.support.fakes_llm import Canned, fake_server, sse, text_event

Event = dict[str, object]
SECRET = "sk-live-0aB1cD2eF3gH4iJ5kL6"


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


def halves(text: str) -> tuple[str, str]:
    """The text as it comes in two pieces."""
    return text[: len(text) // 2], text[len(text) // 2 :]


def _chat(plan: Plan) -> list[Event]:
    deltas: list[Event] = []
    if plan.thought:
        deltas.append({"reasoning_content": plan.thought})
    deltas += [{"content": piece} for piece in plan.pieces]
    for index, (ident, name, arguments) in enumerate(plan.calls):
        first, rest = halves(arguments)
        function = {"name": name, "arguments": first}
        deltas.append(
            {"tool_calls": [{"index": index, "id": ident, "type": "function", "function": function}]}
        )
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": rest}}]})
    return [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]


def _chat_end(plan: Plan) -> list[Event]:
    finish = {"end": "stop", "tool_calls": "tool_calls", "length": "length", "refusal": "content_filter"}
    usage = {"prompt_tokens": plan.usage[0], "completion_tokens": plan.usage[1]}
    return [text_event("", finish[plan.stop]), {"choices": [], "usage": usage}]


def _messages(plan: Plan) -> list[Event]:
    blocks: list[tuple[Event, list[Event]]] = []
    if plan.thought:
        blocks.append(({"type": "thinking"}, [{"type": "thinking_delta", "thinking": plan.thought}]))
    if plan.pieces:
        blocks.append(({"type": "text"}, [{"type": "text_delta", "text": piece} for piece in plan.pieces]))
    for ident, name, arguments in plan.calls:
        start: Event = {"type": "tool_use", "id": ident, "name": name, "input": {}}
        blocks.append(
            (start, [{"type": "input_json_delta", "partial_json": part} for part in halves(arguments)])
        )
    usage = {"input_tokens": plan.usage[0], "output_tokens": 1}
    events: list[Event] = [{"type": "message_start", "message": {"usage": usage}}]
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return events


def _messages_end(plan: Plan) -> list[Event]:
    stops = {"end": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "refusal": "refusal"}
    delta = {"stop_reason": stops[plan.stop]}
    return [
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": plan.usage[1]}},
        {"type": "message_stop"},
    ]


def _responses(plan: Plan) -> list[Event]:
    events: list[Event] = []
    if plan.thought:
        told = {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": plan.thought}
        events.append(told)
    for piece in plan.pieces:
        events.append({"type": "response.output_text.delta", "output_index": 1, "delta": piece})
    for place, (ident, name, arguments) in enumerate(plan.calls, 2):
        item = {"type": "function_call", "call_id": ident, "name": name}
        first: Event = {"type": "response.output_item.added", "item": {**item, "arguments": ""}}
        last: Event = {"type": "response.output_item.done", "item": {**item, "arguments": arguments}}
        kind = "response.function_call_arguments.delta"
        deltas: list[Event] = [{"type": kind, "delta": part} for part in halves(arguments)]
        events += [{**event, "output_index": place} for event in (first, *deltas, last)]
    return events


def _responses_end(plan: Plan) -> list[Event]:
    reasons = {"length": "max_output_tokens", "refusal": "content_filter"}
    reason = reasons.get(plan.stop)
    usage = {"input_tokens": plan.usage[0], "output_tokens": plan.usage[1]}
    response = {"usage": usage, "incomplete_details": {"reason": reason} if reason else None}
    return [{"type": "response.completed", "response": response}]


def _ollama(plan: Plan) -> list[Event]:
    told: list[Event] = [{"thinking": plan.thought}] if plan.thought else []
    told += [{"content": piece} for piece in plan.pieces]
    for ident, name, arguments in plan.calls:
        function = {"name": name, "arguments": _object(arguments)}
        told.append({"tool_calls": [{"id": ident, "function": function}]})
    return [{"message": {"role": "assistant", "content": "", **more}, "done": False} for more in told]


def _object(arguments: str) -> object:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _ollama_end(plan: Plan) -> list[Event]:
    reason = {"length": "length"}.get(plan.stop, "stop")
    sizes = {"prompt_eval_count": plan.usage[0], "eval_count": plan.usage[1]}
    message = {"role": "assistant", "content": ""}
    return [{"message": message, "done": True, "done_reason": reason, **sizes}]


def lines(*events: object) -> tuple[bytes, ...]:
    """Each value as a line."""
    return tuple(json.dumps(event).encode() + b"\n" for event in events)


def events(*values: object) -> tuple[bytes, ...]:
    """Each value as an event."""
    return sse(*values, done=False)


@dataclass(frozen=True)
class Wire:
    """How one kind is spoken to. begin: all but the end of an answer. fault: an error as it comes inside."""

    provider: type[HttpProvider]
    begin: Callable[[Plan], list[Event]]
    end: Callable[[Plan], list[Event]]
    fault: Event
    frames: Callable[..., tuple[bytes, ...]] = events
    base: str = "/v1"
    refuses: bool = True
    key_header: str = "authorization"

    def parts(self, plan: Plan) -> tuple[bytes, ...]:
        """The answer's pieces, its end left out."""
        return self.frames(*self.begin(plan))

    def whole(self, plan: Plan) -> tuple[bytes, ...]:
        """All of the answer."""
        return self.frames(*self.begin(plan), *self.end(plan))


OVERLOADED: Event = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
WIRES: Mapping[str, Wire] = {
    "openai": Wire(OpenAIProvider, _chat, _chat_end, OVERLOADED),
    "openai_responses": Wire(ResponsesProvider, _responses, _responses_end, OVERLOADED),
    "anthropic": Wire(AnthropicProvider, _messages, _messages_end, OVERLOADED, key_header="x-api-key"),
    "ollama": Wire(OllamaProvider, _ollama, _ollama_end, OVERLOADED, lines, base="", refuses=False),
}


def canned(wire: Wire, plan: Plan) -> Canned:
    """The plan as a server's answer."""
    if plan.status:
        return Canned((b"{}",), status=plan.status)
    if plan.ending != "stop":
        return Canned(wire.parts(plan), ending={"drop": "cut", "hang": "hang"}[plan.ending])
    return Canned(wire.whole(plan))


def model_of(kind: str, base_url: str, **options: object) -> HttpProvider:
    """The provider of that kind at that server, with a key."""
    base_url = base_url.removesuffix("/v1") + WIRES[kind].base
    settings = ProviderSettings("one", kind, base_url, api_key_env="MY_KEY", options=options)
    return WIRES[kind].provider(settings, environ={"MY_KEY": SECRET})


@asynccontextmanager
async def over_http(kind: str, plan: Plan) -> AsyncIterator[Provider]:
    """A provider whose server answers as planned."""
    async with fake_server(canned(WIRES[kind], plan)) as server:
        model = model_of(kind, server.base_url)
        try:
            yield model
        finally:
            await model.aclose()


@asynccontextmanager
async def scripted(plan: Plan) -> AsyncIterator[Provider]:
    """The scripted provider with that reply."""
    reply = Reply(
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
    yield ScriptedProvider(Script((reply,)), name="one")
