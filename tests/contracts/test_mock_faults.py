"""Whole conversations of every HTTP kind with the mock model: a strict server that fails.

Faults, tool rounds and a small context come together, as they do.
"""

import json
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from runtime.session.session import Session
from runtime.values.errors import ProviderError, ProviderErrorKind
from tests.contracts.plans import WIRES, model_of
from tests.support.fakes import EchoTool, RecordingClient, ask, make_session

Kind = ProviderErrorKind
SECONDS = 60


@pytest.fixture(params=WIRES)
def kind(request) -> str:
    return str(request.param)


def log_of(url: str) -> list[dict[str, Any]]:
    """What the mock was asked. Straight to the loopback address, past any proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url + "/_mock/log", timeout=10) as answer:
        entries: list[dict[str, Any]] = json.load(answer)
        return entries


@asynccontextmanager
async def talk(
    kind: str, url: str, **options: object
) -> AsyncIterator[tuple[Session, RecordingClient, EchoTool]]:
    model, tool = model_of(kind, url + "/v1", **options), EchoTool()
    try:
        with trio.fail_after(SECONDS):
            session, client, _ = await make_session(model, tools=[tool], window=None)
            yield session, client, tool
    finally:
        await model.aclose()


async def test_faults_that_pass_cost_no_turn(kind, mock_model: Callable[..., str]):
    """At the first call of a turn and between its tool rounds: the answer is whole, no tool ran twice."""
    url = mock_model(faults=["429", "", "529", "", "500", ""], tool_loop=2, tool_name="echo", reply_chars=200)
    async with talk(kind, url) as (session, client, tool):
        assert await ask(session, "TURN-00001") == "end_turn"
    assert "ANSWER-00001" in client.text()
    assert len(tool.ran) == 2
    entries = log_of(url)
    assert [entry["status"] for entry in entries] == [429, 200, 529, 200, 500, 200]
    assert {entry["pairs"] for entry in entries} == {"ok"}


ENDING = {
    "drop": Kind.STREAM_DROPPED,
    "silence": Kind.STREAM_DROPPED,
    "nonsense": Kind.MALFORMED,
    "page": Kind.MALFORMED,
}


@pytest.mark.parametrize("fault", ENDING)
async def test_an_answer_that_is_spoilt_ends_its_turn_and_no_other(
    kind, fault, mock_model: Callable[..., str]
):
    url = mock_model(faults=["", fault], reply_chars=400, chunks=8)
    async with talk(kind, url) as (session, client, _):
        assert await ask(session, "TURN-00001") == "end_turn"
        with pytest.raises(ProviderError) as caught:
            await ask(session, "TURN-00002")
        assert caught.value.kind is ENDING[fault]
        assert await ask(session, "TURN-00003") == "end_turn"
    said = client.text()
    assert ("ANSWER-00002" in said) is (fault != "page")
    assert caught.value.message in said
    assert "ANSWER-00003" in said
    assert [entry["pairs"] for entry in log_of(url)] == ["ok"] * 3


@pytest.mark.parametrize("fault", ["drop", "silence", "nonsense"])
async def test_a_call_that_is_spoilt_is_not_run(kind, fault, mock_model: Callable[..., str]):
    """A server may have had nothing to show by then; it is then asked again."""
    url = mock_model(faults=[fault], tool_loop=1, tool_name="echo", reply_chars=50)
    async with talk(kind, url) as (session, client, tool):
        try:
            await ask(session, "TURN-00001")
        except ProviderError:
            assert tool.ran == []
            await ask(session, "TURN-00001")
    assert len(tool.ran) == 1
    assert "ANSWER-00001" in client.text()
    assert {entry["pairs"] for entry in log_of(url)} == {"ok"}


async def test_arguments_that_are_spoilt_go_back_to_the_model(kind, mock_model: Callable[..., str]):
    url = mock_model(faults=["arguments"], tool_loop=2, tool_name="echo", reply_chars=50)
    async with talk(kind, url) as (session, client, tool):
        assert await ask(session, "TURN-00001") == "end_turn"
    assert len(tool.ran) == 1, "the first call could not be read, the second was"
    assert "ANSWER-00001" in client.text()
    assert [(entry["status"], entry["pairs"]) for entry in log_of(url)] == [(200, "ok")] * 3


async def test_a_packed_answer_and_a_slow_one(kind, mock_model: Callable[..., str]):
    url = mock_model(faults=["gzip", "slow"], slow_seconds=0.3, reply_chars=400)
    async with talk(kind, url) as (session, client, _):
        for turn in (1, 2):
            assert await ask(session, f"TURN-{turn:05d}") == "end_turn"
    assert "ANSWER-00001" in client.text()
    assert "ANSWER-00002" in client.text()


async def test_a_first_byte_that_comes_too_late(kind, mock_model: Callable[..., str]):
    url = mock_model(faults=["slow"], slow_seconds=5.0, reply_chars=50)
    async with talk(kind, url, idle_timeout=0.3) as (session, client, _):
        with pytest.raises(ProviderError) as caught:
            await ask(session, "TURN-00001")
        assert caught.value.kind is Kind.TIMEOUT
        assert await ask(session, "TURN-00002") == "end_turn"
    assert "ANSWER-00002" in client.text()


async def test_faults_in_a_context_that_is_too_small(kind, mock_model: Callable[..., str]):
    """Turns leave, are told of, and nothing else is lost, whatever else the server does meanwhile."""
    faults = ["", "500", "", "429", "", "", "529", "", "429", ""]
    url = mock_model(faults=faults, limit_tokens=1500, reply_chars=1200, tool_loop=1, tool_name="echo")
    async with talk(kind, url) as (session, client, tool):
        for turn in range(1, 9):
            assert await ask(session, f"TURN-{turn:05d}") == "end_turn"
            assert f"ANSWER-{turn:05d}" in client.text()
        assert session.conversation.keeper.route.learned_window == 1500
    assert client.trims()
    assert len(tool.ran) == 8
    entries = log_of(url)
    assert {entry["pairs"] for entry in entries} == {"ok"}
    assert {entry["status"] for entry in entries} == {200, 429, 500, 529, "overflow"}
    assert all(entry["tokens"] <= 1500 for entry in entries if entry["status"] == 200)
