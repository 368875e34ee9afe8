"""Secrets leave a session before the model sees them and before they are stored; both know the same text."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from runtime.conversation.conversation import Conversation
from runtime.conversation.load_and_fork import read_state, restore
from runtime.mcp.settings import McpSettings
from runtime.mcp.tools_offered import Offering
from runtime.ports import ToolOutcome
from runtime.session.session import Session
from runtime.setup.redaction import MARK, RedactedTool, Redaction
from runtime.store.memory import MemoryStore
from runtime.values.errors import ToolError
from runtime.values.events import FileDiff
from runtime.values.prompt import Prompt
from runtime.values.stored import SessionRecord
from tests.support.fakes import TIME, EchoTool, RecordingClient, call, make_setup, prompt, script

SECRET = "sk-12345"
REDACTION = Redaction((re.compile(r"sk-\w+"), re.compile("hunter2")))


class Leaky(EchoTool):
    """A tool that gives secrets away in each of its ways."""

    async def run(self, arguments, context):
        await trio.lowlevel.checkpoint()
        if arguments.get("text") == "fail":
            raise ToolError(f"no entry with {SECRET}")
        diff = FileDiff("/a", f"old {SECRET}", "new hunter2")
        return ToolOutcome(f"found {SECRET}", shown=f"shown {SECRET}", diffs=(diff, FileDiff("/b", None, "")))


async def session_with(provider):
    """A session that redacts, over a memory store."""
    store = MemoryStore()
    await store.create_session(SessionRecord("s", "/project", TIME, TIME))
    client = RecordingClient()
    setup = replace(make_setup(provider), redaction=REDACTION, tools=REDACTION.tools({"echo": Leaky()}))
    talk = Conversation("s", Path("/project"), setup, store, client)
    return Session(talk), client, store, setup


async def test_no_secret_is_stored_or_sent_and_a_load_sees_what_was_there():
    provider = script(
        {"calls": [call("go", id="1"), call("fail", id="2")]}, {"text": "done"}, {"text": "again"}
    )
    session, client, store, setup = await session_with(provider)
    await session.run(session.submit(prompt(f"my key is {SECRET}\nand hunter2")))
    stored = b"".join(entry.payload for entry in await store.entries("s"))
    head = await store.session("s")
    sent = [row.content for request in provider.requests for row in request.rows()]
    shown = repr(client.events)
    for text in (stored.decode(), json.dumps(sent), shown, str(head)):
        assert SECRET not in text
        assert "hunter2" not in text
    assert f"my key is {MARK}\nand {MARK}" in sent
    assert f"found {MARK}" in sent
    assert f"no entry with {MARK}" in sent
    live = [row for segment in session.conversation.keeper.fitted().segments for row in segment.rows]
    talk = Conversation(
        "s", Path("/project"), setup, store, RecordingClient(), state=read_state(head.state if head else "")
    )
    await restore(talk)
    assert [row for segment in talk.keeper.fitted().segments for row in segment.rows] == live


def test_a_prompt_s_blocks_are_redacted_except_what_is_no_text():
    given = Prompt(
        f"see {SECRET}",
        (
            {"type": "text", "text": f"see {SECRET}"},
            {"type": "image", "data": "sk-1234", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": f"{SECRET}", "blob": "sk-9"}},
            {"type": "text", "text": "x", "annotations": {"audience": ["hunter2"], "priority": 1.0}},
        ),
    )
    text, blocks = REDACTION.prompt(given)[:2]
    assert text == f"see {MARK}"
    assert blocks == (
        {"type": "text", "text": f"see {MARK}"},
        {"type": "image", "data": "sk-1234", "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "file:///a", "text": MARK, "blob": "sk-9"}},
        {"type": "text", "text": "x", "annotations": {"audience": [MARK], "priority": 1.0}},
    )


def test_a_result_is_redacted_in_all_its_parts():
    diff = FileDiff("/a", f"old {SECRET}", "new hunter2")
    given = ToolOutcome(f"found {SECRET}", True, f"shown {SECRET}", (diff, FileDiff("/b", None, "")), "t1")
    assert REDACTION.outcome(given) == ToolOutcome(
        f"found {MARK}",
        True,
        f"shown {MARK}",
        (FileDiff("/a", f"old {MARK}", f"new {MARK}"), FileDiff("/b", None, "")),
        "t1",
    )


def test_without_patterns_nothing_is_touched():
    tools, nothing, asked = {"echo": EchoTool()}, Redaction(), prompt("sk-1")
    assert nothing.tools(tools) is tools
    assert nothing.prompt(asked) is asked


def test_a_tool_is_wrapped_once_and_looks_like_itself():
    once = REDACTION.tools({"echo": EchoTool()})
    assert REDACTION.tools(once) == once
    wrapped = once["echo"]
    assert isinstance(wrapped, RedactedTool)
    assert (wrapped.spec, wrapped.kind) == (EchoTool().spec, EchoTool().kind)
    assert wrapped.view({"text": "a"}, None).title == "Echo a"  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "plain", "ünïcödé ✓"])
def test_other_text_stays_as_it_is(text):
    assert REDACTION.text(text) == text


def test_tools_of_servers_are_redacted_too():
    setup = replace(make_setup(script(echo="x"), tools=[EchoTool()]), redaction=REDACTION)
    offered = Offering(McpSettings()).tools([], setup, setup.route)
    assert offered == REDACTION.tools({"echo": setup.tools["echo"]})
