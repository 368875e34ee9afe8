"""Cancel in each tool, in a question and in a terminal: `cancelled` within a second, nothing left of it."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio

from runtime.values.profiles import TOOLS
from tests.process.homes import Home, call, calls, says
from tests.support.fakes_llm import Canned, fake_server
from tests.support.processes import PATIENCE, all_gone, lives, until
from tests.support.wire import Handler, never
from tests.support.wire_order import Json
from tests.support.wire_talk import Talk

SOON = 1.0
"""Seconds from the cancel to the answer, on the client's side of the pipes."""
MCP = Path(__file__).resolve().parents[2] / "data" / "mcp" / "server.py"
READS: Json = {"fs": {"readTextFile": True}}
WRITES: Json = {"fs": {"writeTextFile": True}}
TERMINAL: Json = {"terminal": True}
FORMS: Json = {"elicitation": {"form": {}}}


async def no_output(params: Json) -> object:
    await trio.lowlevel.checkpoint()
    return {"output": "", "truncated": False}


async def new_terminal(params: Json) -> object:
    await trio.lowlevel.checkpoint()
    return {"terminalId": "t"}


async def done(params: Json) -> object:
    await trio.lowlevel.checkpoint()
    return {}


TERMINALS = {
    "terminal/create": new_terminal,
    "terminal/output": no_output,
    "terminal/wait_for_exit": never,
    "terminal/kill": done,
    "terminal/release": done,
}


@dataclass(frozen=True)
class Case:
    """A call that is in work, and what its client offers. waits_in: the client's method that never answers.

    mode: the permission mode. ends: the method that the client must be called with behind the cancel.
    """

    wanted: Json
    offers: Json = field(default_factory=dict)
    handlers: Mapping[str, Handler] = field(default_factory=dict)
    waits_in: str = ""
    mode: str = "yolo"
    ends: str = ""


EDIT = call("edit_file", path="a.txt", edits=[{"old": "aaa", "new": "b", "all": True}])
WRITE = call("write_file", path="made.txt", content="x")
SLEEP = call("run_command", command="echo $$ >> ../pids; sleep 600 & echo $! >> ../pids; wait")
ASK = call("ask_user", question="Which one?")
CASES = {
    "read_file": Case(
        call("read_file", path="a.txt"), READS, {"fs/read_text_file": never}, "fs/read_text_file"
    ),
    "list_dir": Case(call("list_dir", path=".")),
    "find_files": Case(call("find_files", pattern="**/*")),
    "search_text": Case(call("search_text", pattern="(a+)+$", path="a.txt")),
    "edit_file": Case(EDIT, READS, {"fs/read_text_file": never}, "fs/read_text_file"),
    "write_file": Case(WRITE, WRITES, {"fs/write_text_file": never}, "fs/write_text_file"),
    "run_command": Case(SLEEP),
    "update_plan": Case(call("update_plan", entries=[{"content": "x", "status": "pending"}])),
    "exit_plan_mode": Case(
        call("exit_plan_mode", plan="1."),
        handlers={"session/request_permission": never},
        waits_in="session/request_permission",
        mode="plan",
    ),
    "ask_user": Case(ASK, FORMS, {"elicitation/create": never}, "elicitation/create"),
    "recall_history": Case(call("recall_history", query="go")),
    "in a terminal": Case(SLEEP, TERMINAL, TERMINALS, "terminal/wait_for_exit", ends="terminal/release"),
    "before a terminal": Case(SLEEP, TERMINAL, TERMINALS | {"terminal/create": never}, "terminal/create"),
    **{
        f"permission of {name}": Case(
            wanted,
            handlers={"session/request_permission": never},
            waits_in="session/request_permission",
            mode="ask",
        )
        for name, wanted in {
            "edit_file": EDIT,
            "write_file": WRITE,
            "run_command": SLEEP,
            "fetch_url": call("fetch_url", url="https://example.org/"),
        }.items()
    },
}


def test_no_tool_is_forgotten() -> None:
    assert set(TOOLS) - {"fetch_url"} <= set(CASES)


def children(pid: int) -> set[int]:
    """The processes that a process has started and not collected."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            facts = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(facts[1]) == pid and facts[0] not in "ZX":
            found.add(int(stat.parent.name))
    return found


async def cancel_it(talk: Talk, asked: int) -> None:
    """Cancel in the middle; all that the turn began must end."""
    before = trio.current_time()
    await talk.cancel()
    turn = await talk.end_of(asked)
    assert turn.stop == "cancelled"
    assert trio.current_time() - before < SOON
    assert [shown["status"] for shown in turn.calls if shown["status"] not in ("completed", "failed")] == []


async def works(talk: Talk) -> None:
    turn = await talk.turn("go on")
    assert (turn.stop, turn.text) == ("end_turn", "yes")


async def in_work(talk: Talk, case: Case) -> None:
    """Wait until the call is where it is to be cancelled."""
    if case.waits_in:
        await talk.agent.until(lambda frame: frame.get("method") == case.waits_in)
        return
    await talk.see("tool_call_update")
    await trio.sleep(0.2)


@pytest.mark.parametrize("name", CASES)
async def test_cancel(home: Home, name: str) -> None:
    case = CASES[name]
    home.script(calls(case.wanted), says("half", hang=True, when="first"), echo="yes")
    (home.work / "a.txt").write_text("a" * 40 + "b\n")
    async with home.talk(case.offers, handlers=case.handlers) as talk:
        await talk.agent.call("session/set_mode", {"sessionId": talk.session_id, "modeId": case.mode})
        started = children(talk.agent.process.pid)
        asked = await talk.ask("first")
        await in_work(talk, case)
        await cancel_it(talk, asked)
        if case.ends:
            await talk.agent.until(lambda frame: frame.get("method") == case.ends)
        with trio.fail_after(PATIENCE):
            await until(lambda: children(talk.agent.process.pid) == started)
        if name == "run_command":
            assert await all_gone(home.root / "pids", 2)
        await works(talk)
    assert (home.work / "a.txt").read_text() == "a" * 40 + "b\n"
    assert not (home.work / "made.txt").exists()


async def test_cancel_while_a_page_does_not_come(home: Home) -> None:
    async with fake_server(Canned((b"<p>half",), content_type="text/html", ending="hang")) as server:
        address = server.base_url.removesuffix("/v1")
        home.script(
            calls(call("fetch_url", url=f"{address}/page")), says("half", hang=True, when="first"), echo="yes"
        )
        path = home.root / "config" / "config.toml"
        path.write_text(
            path.read_text() + '\n[fetch]\nprivate_addresses = true\n[permissions]\nmode = "yolo"\n'
        )
        async with home.talk() as talk:
            asked = await talk.ask("first")
            with trio.fail_after(PATIENCE):
                await until(lambda: bool(server.asked))
            await cancel_it(talk, asked)
            await works(talk)


async def test_cancel_in_the_tool_of_a_server(home: Home) -> None:
    """The server stays: other turns need it."""
    pids = home.root / "pids"
    home.script(calls(call("mcp__good__sleep", seconds=600)), echo="yes")
    path = home.root / "config" / "config.toml"
    server = f"command = {json.dumps(sys.executable)}\nargs = {json.dumps([str(MCP), 'good', str(pids)])}\n"
    path.write_text(f'{path.read_text()}\n[permissions]\nmode = "yolo"\n[mcp_servers.good]\n{server}')
    async with home.talk() as talk:
        asked = await talk.ask("first")
        await talk.see("tool_call_update", status="in_progress")
        await trio.sleep(0.2)
        await cancel_it(talk, asked)
        await works(talk)
        assert lives(int(pids.read_text().split()[0]))
    assert await all_gone(pids, 1)
