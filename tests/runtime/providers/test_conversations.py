"""Conversations of a session with each HTTP kind, over real sockets: a strict model on the other side."""

import json
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from runtime.history.live.history import History
from runtime.providers import catalog
from runtime.providers.settings import ProviderSettings
from runtime.session.session import Session
from runtime.transcript.restore import turn_rows
from runtime.transcript.turn_record import read_turns
from runtime.values.profiles import Profile
from runtime.values.stored import Store
from tests.support.fakes import EchoTool, RecordingClient, ask, make_session
from tests.support.fakes_llm import Canned, FakeServer, fake_server

STREAMS = Path(__file__).parents[2] / "data" / "streams"
KINDS = ("openai", "openai_responses", "anthropic", "ollama")
Talk = tuple[Session, RecordingClient, Store]


def log_of(url: str) -> list[dict[str, Any]]:
    """What the mock was asked. Straight to the loopback address, past any proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url + "/_mock/log", timeout=10) as answer:
        entries: list[dict[str, Any]] = json.load(answer)
        return entries


@asynccontextmanager
async def talk(kind: str, base_url: str, **more: Any) -> AsyncIterator[Talk]:
    """A session with a model of that kind, one tool at hand."""
    options = more.pop("options", {})
    provider = catalog.create(ProviderSettings("p", kind, base_url, options=options))
    try:
        with trio.fail_after(30):
            yield await make_session(provider, tools=[EchoTool()], **more)
    finally:
        await provider.aclose()


@pytest.mark.parametrize("kind", KINDS)
async def test_tool_rounds_with_a_strict_server(kind, mock_model: Callable[..., str]):
    url = mock_model(tool_loop=2, tool_name="echo", reply_chars=200, chunks=5)
    async with talk(kind, f"{url}/v1") as (session, client, _):
        for turn in range(1, 4):
            assert await ask(session, f"TURN-{turn:05d} go on") == "end_turn"
    assert [f"ANSWER-{turn:05d}" in client.text() for turn in range(1, 4)] == [True] * 3
    entries = log_of(url)
    assert [(entry["status"], entry["pairs"]) for entry in entries] == [(200, "ok")] * 9
    assert [entry["call"] for entry in entries] == [True, True, False] * 3


@pytest.mark.parametrize("kind", KINDS)
async def test_the_last_call_of_a_turn_offers_no_tools(kind, mock_model: Callable[..., str]):
    url = mock_model(tool_loop=9, tool_name="echo", reply_chars=50)
    async with talk(kind, f"{url}/v1", profile=Profile(max_tool_iterations=2)) as (session, client, _):
        assert await ask(session, "TURN-00001") == "max_turn_requests"
        assert "ANSWER-00001" in client.text()
    assert [entry["status"] for entry in log_of(url)] == [200, 200, 200]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_stated_window_is_learned_and_turns_leave(kind, mock_model: Callable[..., str]):
    url = mock_model(limit_tokens=1500, reply_chars=1200)
    async with talk(kind, f"{url}/v1", window=None) as (session, client, _):
        for turn in range(1, 9):
            assert await ask(session, f"TURN-{turn:05d}") == "end_turn"
            assert f"ANSWER-{turn:05d}" in client.text()
        assert session.conversation.keeper.route.learned_window == 1500
    assert client.trims()
    assert "overflow" in [entry["status"] for entry in log_of(url)]


def recorded(folder: str, *names: str) -> list[Canned]:
    return [Canned(((STREAMS / folder / name).read_bytes(),)) for name in names]


REASONING = {
    "anthropic": ("messages", "thinking_tools.sse", "interleaved.sse", "thinking_text.sse"),
    "openai_responses": ("responses", "reasoning_tools.sse", "two_thoughts.sse", "reasoning_text.sse"),
}
KEPT = {"thinking", "redacted_thinking", "reasoning"}


def said(server: FakeServer, number: int) -> list[dict[str, Any]]:
    """All blocks, or items, of a request."""
    body: dict[str, Any] = server.asked[number].body
    if "input" in body:
        return list(body["input"])
    return [block for message in body["messages"] for block in message["content"]]


def kinds(server: FakeServer, number: int) -> list[str]:
    return [str(block["type"]) for block in said(server, number)]


FIRST_ROUND = {
    "anthropic": ["text", "thinking", "text", "tool_use", "tool_use", "tool_result", "tool_result"],
    "openai_responses": [
        "message",
        "reasoning",
        "message",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
    ],
}
SECOND_ROUND = {
    "anthropic": ["redacted_thinking", "text", "thinking", "tool_use", "tool_result"],
    "openai_responses": [
        "reasoning",
        "function_call",
        "reasoning",
        "function_call",
        "function_call_output",
        "function_call_output",
    ],
}


@pytest.mark.parametrize("kind", REASONING)
async def test_reasoning_goes_back_in_the_running_turn_alone(kind):
    answers = recorded(*REASONING[kind])
    async with fake_server(*answers) as server, talk(kind, server.base_url) as (session, _, store):
        assert await ask(session, "one") == "end_turn"
        estimate = session.conversation.keeper.history.tokens
        assert await ask(session, "two") == "end_turn"
        history: History = session.conversation.keeper.history
        turns = [turn async for turn in read_turns(store, "s")]
    assert kinds(server, 1) == FIRST_ROUND[kind]
    assert kinds(server, 2) == FIRST_ROUND[kind] + SECOND_ROUND[kind]
    assert not KEPT & set(kinds(server, 3))
    kept = [block for block in said(server, 2) if block["type"] in KEPT]
    recordings = b"".join(answer.chunks[0] for answer in answers[:2]).decode()
    for block in kept:
        secret = block.get("signature") or block.get("data") or block["encrypted_content"]
        assert secret in recordings
    assert len(kept) == 3
    # What was priced while it was sent is not any more, and the transcript still has it.
    assert estimate > history.past[0].whole().tokens
    assert [bool(row.reasoning) for row in turn_rows(turns[0]) if row.tool_calls] == [True, True]
    assert not any(row.reasoning for row in history.past[0].whole().rows())


async def test_thinking_is_asked_for_and_stays_on_in_its_turn():
    answers = recorded("messages", "thinking_tools.sse", "thinking_text.sse")
    options = {"thinking_budget": 1024}
    async with (
        fake_server(*answers) as server,
        talk("anthropic", server.base_url, options=options) as (session, *_),
    ):
        await ask(session, "one")
    assert [asked.body["thinking"] for asked in server.asked] == [
        {"type": "enabled", "budget_tokens": 1024}
    ] * 2
    assert "thinking" in kinds(server, 1)


async def test_an_overloaded_model_is_asked_again_before_anything_is_shown(autojump_clock):
    autojump_clock.autojump_threshold = 0.05
    error = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"m"}}\n\n'
    answers = [Canned((error,)), *recorded("messages", "thinking_text.sse")]
    async with fake_server(*answers) as server, talk("anthropic", server.base_url) as (session, client, _):
        assert await ask(session, "one") == "end_turn"
    assert client.text() == "42"
    assert len(server.asked) == 2


async def test_what_anthropic_is_sent():
    async with fake_server(*recorded("messages", "text.sse")) as server:
        provider = catalog.create(
            ProviderSettings("p", "anthropic", server.base_url, headers={"Anthropic-Version": "2099-01-01"})
        )
        session, *_ = await make_session(provider)
        await ask(session, "one")
        await provider.aclose()
    asked = server.asked[0]
    assert asked.line == "POST /v1/messages HTTP/1.1"
    assert asked.headers["anthropic-version"] == "2099-01-01"
    assert "x-api-key" not in asked.headers
