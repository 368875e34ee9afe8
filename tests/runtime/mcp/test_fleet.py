"""A session's servers over fake connections: the first turn's wait, tools between turns, notices, remarks."""

from dataclasses import replace
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from runtime.mcp.remote_tool import Offer, RemoteTool, ServerTrouble
from runtime.mcp.resources import ListResources, ReadResource
from runtime.mcp.session_servers import AGAIN, STARTING, Fleet
from runtime.mcp.settings import McpSettings, ServerSettings
from runtime.mcp.tool import McpTool
from runtime.ports import ToolContext
from runtime.session.session import Session
from runtime.values.errors import ToolError
from runtime.values.events import Noticed, ToolCallChanged
from tests.runtime.mcp.fakes import FakeWorld, tools
from tests.support.fakes import EchoTool, RecordingClient, ask, make_session, prompt, script

BROKEN = ServerTrouble("it broke")


async def made(world, *replies, settings=None, **more):
    """A session over a fleet of the world's servers, its client, and the model."""
    servers = [ServerSettings(name) for name in world.plans]
    fleet = Fleet(servers, settings or McpSettings(), world.connect)
    provider = script(*(replies or [{"text": "ok"}]), **({} if replies else {"echo": "ok"}))
    session, client, _ = await make_session(provider, tools=[EchoTool()], **more)
    return Session(session.conversation, fleet), client, provider, fleet


def offered(session):
    return list(session.conversation.setup.tools)


def notices(client):
    return [(event.title, event.description) for event in client.events if isinstance(event, Noticed)]


async def test_the_first_turn_has_the_tools(autojump_clock):
    world = FakeWorld({"one": [3.0, Offer(tools("a"))], "two": [Offer(tools("a", "b"))]})
    session, client, provider, _ = await made(world)
    assert await ask(session, "go") == "end_turn"
    assert offered(session) == ["echo", "mcp__one__a", "mcp__two__a", "mcp__two__b"]
    assert [spec.name for spec in provider.requests[0].tools] == offered(session)
    assert notices(client) == [("MCP servers", "Waiting for one ...")]
    await session.close()
    assert sorted(world.closed) == ["one", "two"]


async def test_the_wait_is_bounded_and_only_once(autojump_clock):
    world = FakeWorld({"slow": [60.0, Offer(tools("a"))], "bad": [BROKEN]})
    session, client, _, _ = await made(world, settings=McpSettings(first_turn_wait=2))
    began = trio.current_time()
    await ask(session, "go")
    assert trio.current_time() - began == pytest.approx(2, abs=0.5)
    assert offered(session) == ["echo"]
    assert notices(client) == [
        ("MCP servers", "Waiting for slow ..."),
        ("MCP server slow", STARTING),
        ("MCP server bad", "it broke"),
    ]
    began = trio.current_time()
    await ask(session, "again")
    assert trio.current_time() - began < 0.5
    assert len(notices(client)) == 3
    await trio.sleep(70)
    await ask(session, "and again")
    assert offered(session) == ["echo", "mcp__slow__a"]
    await session.close()


async def test_no_wait_at_all(autojump_clock):
    world = FakeWorld({"slow": [60.0, Offer()]})
    session, _, _, _ = await made(world, settings=McpSettings(first_turn_wait=0))
    began = trio.current_time()
    await ask(session, "go")
    assert trio.current_time() - began < 0.5
    await session.close()


async def test_a_command_waits_for_nothing(autojump_clock):
    world = FakeWorld({"slow": [3.0, Offer(tools("a"))]})
    session, _, _, _ = await made(world)
    began = trio.current_time()
    await ask(session, "/local")
    assert trio.current_time() == began
    await ask(session, "go")
    assert offered(session) == ["echo", "mcp__slow__a"]
    await session.close()


async def test_cancelled_while_it_waits(nursery, autojump_clock):
    world = FakeWorld({"slow": [60.0, Offer(tools("a"))]})
    session, _, provider, _ = await made(world)
    ticket = session.submit(prompt("go"))
    stops = []

    async def run():
        stops.append(await session.run(ticket))

    nursery.start_soon(run)
    await trio.sleep(1)
    session.cancel()
    await wait_all_tasks_blocked()
    assert (stops, provider.requests) == (["cancelled"], [])
    with trio.fail_after(10):
        assert await ask(session, "go") == "end_turn"
    await session.close()


def systems(request):
    return "\n".join(row.content for row in request.rows() if row.role == "system")


async def test_the_model_is_told_of_what_failed(autojump_clock):
    world = FakeWorld({"bad": [BROKEN, BROKEN, Offer(tools("a"))]})
    session, _, provider, _ = await made(world)
    await ask(session, "go")
    assert "bad (it broke)" in systems(provider.requests[0])
    await trio.sleep(30)
    await ask(session, "go on")
    assert systems(provider.requests[1]) == "You are a test."
    await session.close()


async def test_a_turn_keeps_its_tools(autojump_clock):
    """What changes in a turn comes with the next one, and what was learned of the model stays."""
    world = FakeWorld({"s": [Offer(tools("a"))]})
    replies = [
        {"calls": [{"name": "mcp__s__a", "arguments": {}}]},
        {"text": "1"},
        {"text": "2"},
        {"text": "3"},
    ]
    session, client, provider, _ = await made(world, *replies)
    keeper = session.conversation.keeper
    await ask(session, "one")
    world.links["s"].change("a", "b")
    await trio.sleep(1)
    keeper.route = replace(keeper.route, learned_window=30_000)
    setup = session.conversation.setup
    await ask(session, "two")
    assert session.conversation.setup is not setup
    assert [len(request.tools) for request in provider.requests] == [2, 2, 3]
    assert keeper.route.learned_window == 30_000
    setup = session.conversation.setup
    await ask(session, "three")
    assert session.conversation.setup is setup
    done = [event.content for event in client.events if isinstance(event, ToolCallChanged) and event.content]
    assert done == ["a: {}"]
    await session.close()


async def test_one_very_large_server_and_a_small_one(autojump_clock):
    many = tools(*(f"t{n}" for n in range(1000)))
    world = FakeWorld({"big": [Offer(many)], "small": [Offer(tools("a"))]})
    session, client, _, fleet = await made(world, settings=McpSettings(max_tools=50))
    await ask(session, "go")
    await ask(session, "go on")
    assert len(offered(session)) == 1 + 50
    assert "mcp__small__a" in offered(session)
    assert [title for title, text in notices(client) if text.startswith("49 of its 1,000 tools")] == [
        "MCP server big"
    ]
    assert [(standing.tools, standing.offered) for standing in fleet.states()] == [(1000, 49), (1, 1)]
    await session.close()


async def test_schemas_take_a_share_of_a_small_window(autojump_clock):
    world = FakeWorld({"s": [Offer(tuple(big_tool(n) for n in range(100)))]})
    session, _, _, _ = await made(world, window=8000)
    await ask(session, "go")
    assert 0 < len(offered(session)) - 1 <= 8000 / 4 / 100
    await session.close()


def big_tool(number):
    schema = {"type": "object", "properties": {"x": {"description": "word " * 90}}}
    return RemoteTool(f"t{number}", "T", "D", schema)


async def test_a_crash_is_told_once_and_again_when_it_comes_back(autojump_clock):
    world = FakeWorld({"s": [Offer(tools("a")), BROKEN]})
    session, client, _, _ = await made(world)
    await ask(session, "go")
    world.links["s"].end("it ended")
    for _ in range(3):
        await ask(session, "on")
    assert notices(client) == [("MCP server s", "it ended")]
    assert "mcp__s__a" in offered(session)
    await trio.sleep(40)
    await ask(session, "on")
    assert notices(client)[1:] == [("MCP server s", "it broke")]
    assert offered(session) == ["echo"]
    world.plans["s"] = [Offer(tools("a"))]
    await trio.sleep(AGAIN)
    await ask(session, "on")
    await trio.sleep(1)
    await ask(session, "on")
    assert "mcp__s__a" in offered(session)
    await session.close()


def context():
    return ToolContext("s", Path("/p"), (Path("/p"),), RecordingClient())


async def test_how_a_tool_is_shown_and_asked_for(autojump_clock):
    hinted = RemoteTool("look", "Look around", "d" * 2000, {"properties": {}}, looks=True)
    world = FakeWorld({"my server": [Offer((hinted, *tools("a")))]})
    session, _, _, _ = await made(world)
    await ask(session, "go")
    look, other = (tool for tool in session.conversation.setup.tools.values() if isinstance(tool, McpTool))
    assert (look.kind, other.kind) == ("fetch", "other")
    assert look.view({}, context()).title == "my server: Look around"
    assert len(look.spec.description) == 1024
    request = await look.request({}, context())
    assert (request.action, request.subject) == ("other", "my server:look")
    await session.close()


async def test_resources(autojump_clock):
    world = FakeWorld({"docs": [Offer(resources=True)], "plain": [Offer(tools("a"))]})
    session, _, _, _ = await made(world)
    await ask(session, "go")
    assert offered(session) == ["echo", "mcp_list_resources", "mcp_read_resource", "mcp__plain__a"]
    found = session.conversation.setup.tools
    lists, reads = found["mcp_list_resources"], found["mcp_read_resource"]
    assert isinstance(lists, ListResources)
    assert isinstance(reads, ReadResource)
    assert (await lists.run({}, context())).text == "docs:\ndoc://a  a\ndoc://{x}  x"
    assert (await reads.run({"server": "docs", "uri": "doc://a"}, context())).text == "[doc://a]\nits text"
    assert (await reads.request({"server": "docs", "uri": "doc://a"}, context())).subject == "docs:doc://a"
    assert (await lists.request({}, context())).subject == "docs:resources"
    for arguments in ({"server": "plain", "uri": "x"}, {"server": "docs"}, {}):
        with pytest.raises(ToolError):
            await reads.run(arguments, context())
    assert reads.view({}, context()).title == "Read a resource"
    await session.close()


async def test_a_fault_in_one_server_is_its_own(autojump_clock, caplog):
    class Odd(FakeWorld):
        def connect(self, server, wake):
            if server.name == "odd":
                raise RuntimeError("a bug")
            return super().connect(server, wake)

    session, _, _, fleet = await made(Odd({"odd": [Offer()], "good": [Offer(tools("a"))]}))
    await ask(session, "go")
    assert offered(session) == ["echo", "mcp__good__a"]
    assert [standing.state for standing in fleet.states()] == ["closed", "ready"]
    assert "is given up" in caplog.text
    await session.close()


async def test_closing_what_was_never_started(autojump_clock):
    session, _, _, _ = await made(FakeWorld({"s": [Offer()]}))
    await session.close()
