"""Answers of a model behind HTTP, and what it was asked: for tests that look at the request itself."""

import json
from collections.abc import Mapping
from typing import Any

from tests.support.fakes_llm import Canned, FakeServer, sse, text_event

Row = dict[str, Any]
"""A message of a request."""


def asks(*calls: tuple[str, str, Mapping[str, object]]) -> Canned:
    """An answer of tool calls alone: (id, name, arguments) each."""
    deltas = [
        {
            "index": index,
            "id": ident,
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for index, (ident, name, arguments) in enumerate(calls)
    ]
    events = [{"choices": [{"index": 0, "delta": {"tool_calls": [delta]}}]} for delta in deltas]
    stop = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    return Canned(sse(*events, stop))


def answers(text: str) -> Canned:
    """An answer of text."""
    return Canned(sse(text_event(text), text_event("", "stop")))


def hangs(text: str) -> Canned:
    """An answer that begins with text and never goes on."""
    return Canned(sse(text_event(text), done=False), ending="hang")


def rows_of(server: FakeServer, number: int = -1) -> list[Row]:
    """The messages of a request, the system's aside; which one: its number, the last by default."""
    messages = server.asked[number].body["messages"]
    assert isinstance(messages, list)
    return [row for row in messages if row["role"] != "system"]


def system_of(server: FakeServer, number: int = -1) -> str:
    """The system text of a request."""
    messages = server.asked[number].body["messages"]
    assert isinstance(messages, list)
    return "".join(row["content"] for row in messages if row["role"] == "system")


def tools_of(server: FakeServer, number: int = -1) -> list[str]:
    """The names of the tools that a request offers."""
    tools = server.asked[number].body.get("tools", [])
    assert isinstance(tools, list)
    return [tool["function"]["name"] for tool in tools]


def results_of(rows: list[Row]) -> dict[str, str]:
    """Result texts by call id. Checks on the way that each call has just one, in the rows behind it."""
    results: dict[str, str] = {}
    open_calls: list[str] = []
    for row in rows:
        if row["role"] == "tool":
            open_calls.remove(row["tool_call_id"])
            results[row["tool_call_id"]] = row["content"]
            continue
        assert not open_calls, f"without result: {open_calls}"
        open_calls = [call["id"] for call in row.get("tool_calls") or []]
    assert not open_calls, f"without result: {open_calls}"
    return results
