"""MCP servers under the real process: good ones and bad ones at once, and nothing left of them afterwards."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from tests.process.homes import Home
from tests.support.processes import all_gone, listed_in, until
from tests.support.wire import PATIENCE
from tests.support.wire_order import Json
from tests.support.wire_talk import Talk, greet

SERVER = Path(__file__).resolve().parents[2] / "data" / "mcp" / "server.py"
CLIENT = SERVER.with_name("client.py")
ADD = {"calls": [{"name": "mcp__good__add", "arguments": {"a": 2, "b": 3}}]}
ALL = ("good", "many", "crash", "hang", "deaf", "slow")
"""The names, which are the behaviours, too."""


def named(home: Home, *behaviours: str) -> list[Json]:
    """The servers as a client names them; their process ids go into a file."""
    env = [{"name": "SLOW", "value": "60"}]
    arguments = {name: [str(SERVER), name, str(pids(home))] for name in behaviours}
    return [
        {"name": name, "command": sys.executable, "args": given, "env": env}
        for name, given in arguments.items()
    ]


async def allow(params: Json) -> object:
    """The answer of a person who allows everything once."""
    chosen = next(option for option in params["options"] if option["kind"] == "allow_once")
    return {"outcome": {"outcome": "selected", "optionId": chosen["optionId"]}}


ALLOWS = {"session/request_permission": allow}


def pids(home: Home) -> Path:
    return home.root / "pids"


def settings(home: Home, text: str) -> None:
    """Add to the settings."""
    path = home.root / "config" / "config.toml"
    path.write_text(f"{path.read_text()}\n{text}")


async def test_good_and_bad_servers_at_once(home: Home) -> None:
    home.script(ADD, {"text": "It is five."}, {"text": "Later."})
    settings(home, "[mcp]\nfirst_turn_wait = 15\n[mcp_servers.hang]\nconnect_timeout = 2\n")
    settings(home, "[mcp_servers.deaf]\nconnect_timeout = 2\n[mcp_servers.slow]\nconnect_timeout = 2\n")
    async with home.start(handlers=ALLOWS) as agent:
        hello = await greet(agent)
        assert hello["agentCapabilities"]["mcpCapabilities"] == {"http": True, "sse": True}
        talk = await Talk.new(agent, home.work, named(home, *ALL))
        turn = await talk.turn("Add 2 and 3.")
        assert (turn.stop, turn.text) == ("end_turn", "It is five.")
        assert [(call["title"], call["status"]) for call in turn.calls] == [("good: add", "completed")]
        assert turn.calls[0]["content"][0]["content"]["text"] == "5"
        assert 'exit status 3; it said "missing TOKEN"' in turn.asides
        assert turn.asides.count("it did not answer within 2 s") == 3
        assert "of its 1,000 tools are offered" in turn.asides
        told = (await talk.turn("/mcp")).text.splitlines()
        states = {line.split(":")[0].removeprefix("- "): line.split(": ", 1)[1] for line in told[2:]}
        assert list(states) == list(ALL)
        assert states["good"] == "ready, 10 tools"
        assert states["many"].startswith("ready, 1,000 tools, ")
        await agent.call("session/close", {"sessionId": talk.session_id})
        assert await all_gone(pids(home), len(ALL))
        assert "missing TOKEN" in agent.stderr()


async def test_b093_a_stalled_server_holds_up_nothing(home: Home) -> None:
    home.script({"text": "without"}, ADD, {"text": "with"})
    settings(home, "[mcp]\nfirst_turn_wait = 1\n")
    async with home.start(handlers=ALLOWS) as agent:
        await greet(agent)
        talk = await Talk.new(agent, home.work, named(home, "hang", "good"))
        turn = await talk.turn("ping")
        assert (turn.stop, turn.text) == ("end_turn", "without")
        assert "MCP server hang\nIt is still starting" in turn.asides
        with trio.fail_after(PATIENCE):
            while "- good: ready" not in (await talk.turn("/mcp")).text:
                pass
        turn = await talk.turn("ping")
        assert (turn.text, turn.calls[0]["status"]) == ("with", "completed")
        assert await agent.close() == 0
    assert await all_gone(pids(home), 2)


async def test_b094_b105_one_fails_and_says_why_one_fills_its_stderr(home: Home) -> None:
    home.script({"calls": [{"name": "mcp__chatty__shout", "arguments": {"text": "hi"}}]}, {"text": "ok"})
    settings(home, "[mcp]\nfirst_turn_wait = 20\n")
    async with home.start(handlers=ALLOWS) as agent:
        await greet(agent)
        talk = await Talk.new(agent, home.work, named(home, "crash", "chatty"))
        turn = await talk.turn("use it")
        assert turn.calls[0]["content"][0]["content"]["text"] == "HI"
        told = 'the process ended with exit status 3; it said "missing TOKEN"'
        assert f"MCP server crash\n{told}" in turn.asides
        assert f"MCP server crash: {told}" in agent.stderr()


async def test_a_cancelled_call(home: Home) -> None:
    home.script(
        {"calls": [{"name": "mcp__good__sleep", "arguments": {"seconds": 60}}]}, {"text": "after the cancel"}
    )
    settings(home, "[mcp]\nfirst_turn_wait = 20\n")
    async with home.start(handlers=ALLOWS) as agent:
        await greet(agent)
        talk = await Talk.new(agent, home.work, named(home, "good"))
        request = await talk.ask("sleep")
        await talk.see("tool_call_update", status="in_progress")
        began = trio.current_time()
        await talk.cancel()
        turn = await talk.end_of(request)
        assert trio.current_time() - began < 1
        assert (turn.stop, turn.calls[0]["status"]) == ("cancelled", "failed")
        assert (await talk.turn("on")).text == "after the cancel"


@pytest.mark.parametrize("killed", ["client", "agent"])
async def test_nothing_is_left_after_a_kill(home: Home, killed: str) -> None:
    """Of the client, whose death closes our input; of ourselves, when nothing of ours can run any more."""
    servers = json.dumps(named(home, "good", "deaf", "hang"))
    command = [sys.executable, str(CLIENT), str(home.work), servers]
    with home.log.open("ab") as log:
        client = await trio.lowlevel.open_process(
            command,
            cwd=home.spawn,
            env=home.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
        )
    assert client.stdout is not None
    with trio.fail_after(PATIENCE):
        agent = int(await client.stdout.receive_some())
        await until(lambda: len(listed_in(pids(home))) == 3)
    with pids(home).open("a") as file:
        file.write(f"{agent}\n")
    os.kill(client.pid if killed == "client" else agent, signal.SIGKILL)
    assert await all_gone(pids(home), 4)
    client.kill()
    await client.wait()
    await client.stdout.aclose()
