"""Real servers as child processes, over the SDK."""

from functools import partial

import pytest
import trio

from runtime.mcp.child_guard import GUARD
from runtime.mcp.remote_tool import ServerTrouble
from runtime.mcp.server import State
from tests.runtime.mcp.real import DATA, PATIENCE, SECRET, running, text_of
from tests.support.processes import all_gone, listed_in, until


async def test_a_server_at_work(tmp_path):
    async with running(tmp_path, env={"GIVEN": "yes"}, pass_env=("TOKEN",)) as server:
        assert (server.state, len(server.offer.tools), server.offer.resources) == (State.READY, 10, True)
        assert [tool.name for tool in server.offer.tools if tool.looks] == ["add", "env"]
        result = await server.call("add", {"a": 2, "b": 3})
        assert (text_of(result), result["structuredContent"]) == ("5", {"sum": 5})
        assert (await server.call("fail", {}))["isError"] is True
        picture = (await server.call("picture", {}))["content"]
        assert picture == [{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}]
        uris = [item.get("uri") or item.get("uriTemplate") for item in await server.resources()]
        assert uris == ["test://notes", "test://day/{date}"]
        assert (await server.read("test://notes"))["contents"]
        with pytest.raises(ServerTrouble, match="-32602: bad parameter 'uri'"):
            await server.read("test://nothing")
        values = [text_of(await server.call("env", {"name": name})) for name in ("GIVEN", "TOKEN", "OUR_KEY")]
        assert values == ["yes", SECRET, "(not set)"]
        assert len(text_of(await server.call("flood", {"size": 3_000_000}))) == 3_000_000
        await server.call("grow", {})
        await until(lambda: len(server.offer.tools) == 11)
    assert await all_gone(tmp_path / "pids", 1)


async def test_a_text_that_was_cut_within_a_character_arrives(tmp_path):
    async with running(tmp_path, call_timeout=5) as server:
        assert text_of(await server.call("halves", {})) == "cut \ufffd"


async def test_an_answer_that_is_none_is_an_error_at_once(tmp_path):
    async with running(tmp_path) as server:
        with trio.fail_after(PATIENCE), pytest.raises(ServerTrouble, match="does not follow the protocol"):
            await server.call("broken", {})
        assert text_of(await server.call("add", {"a": 1, "b": 1})) == "2"


async def test_a_line_without_end_is_what_the_caller_hears_of(tmp_path, monkeypatch):
    monkeypatch.setattr("runtime.mcp.child_process.LONGEST_LINE", 1_000_000)
    async with running(tmp_path) as server:
        with pytest.raises(ServerTrouble, match="it sent a line of more than 1,000,000 bytes"):
            await server.call("flood", {"size": 3_000_000})


@pytest.mark.parametrize("said", ["farewell", "unended"])
async def test_an_answer_right_before_the_end_arrives(tmp_path, monkeypatch, said):
    monkeypatch.setattr("runtime.mcp.server.DELAYS", (0.01,) * 9)
    async with running(tmp_path) as server:
        for count in range(1, 6):
            assert text_of(await server.call("shout", {"text": said})) == "good bye"
            await until(partial(_is_back, server, tmp_path / "pids", count + 1))
    assert await all_gone(tmp_path / "pids", 6)


def _is_back(server, pids, starts) -> bool:
    return len(listed_in(pids)) == starts and server.state is State.READY


async def test_a_cancelled_call_returns_at_once_and_the_server_is_told(tmp_path):
    async with running(tmp_path, call_timeout=1) as server:
        began = trio.current_time()
        with trio.move_on_after(0.2):
            await server.call("sleep", {"seconds": 60})
        assert trio.current_time() - began < 1
        with pytest.raises(ServerTrouble, match="did not answer within 1 s"):
            await server.call("sleep", {"seconds": 60})
        while text_of(await server.call("cancelled", {})).count(",") < 1:
            pass  # the second is on its way
    assert await all_gone(tmp_path / "pids", 1)


async def test_a_server_that_dies_comes_back(tmp_path, monkeypatch):
    monkeypatch.setattr("runtime.mcp.server.DELAYS", (0.1, 0.1))
    async with running(tmp_path) as server:
        with pytest.raises(ServerTrouble, match="the process ended with exit status 7"):
            await server.call("die", {})
        await until(lambda: server.state is State.READY and len(listed_in(tmp_path / "pids")) == 2)
        assert text_of(await server.call("add", {"a": 1, "b": 1})) == "2"
    assert await all_gone(tmp_path / "pids", 2)


async def test_all_pages_and_much_noise(tmp_path):
    async with running(tmp_path, "many") as server, running(tmp_path, "chatty") as chatty:
        assert len({tool.name for tool in server.offer.tools}) == 1000
        assert chatty.state is State.READY
    assert await all_gone(tmp_path / "pids", 2)


TROUBLES = [
    ("crash", 'the process ended with exit status 3; it said "missing TOKEN"', False),
    ("hang", "it did not answer within 1 s", False),
    ("deaf", "it did not answer within 1 s", False),
    (
        "garbage",
        'it did not answer within 1 s; it wrote "Welcome to the test server!", which is no message',
        False,
    ),
]


@pytest.mark.parametrize(("behaviour", "problem", "lasting"), TROUBLES)
async def test_servers_that_do_not_work(tmp_path, behaviour, problem, lasting):
    timeout = PATIENCE if behaviour == "crash" else 1
    async with running(tmp_path, behaviour, connect_timeout=timeout) as server:
        assert server.problem == problem
        assert server.state is State.WAITING
    assert await all_gone(tmp_path / "pids", 0)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"command": "no-such-command-anywhere"}, "the command 'no-such-command-anywhere' was not found"),
        ({"command": str(DATA)}, "cannot be started: Permission denied"),
        ({"cwd": "/no/such/folder"}, "its folder '/no/such/folder' was not found"),
        ({"args": ("a\0b",)}, "cannot be started: embedded null byte"),
    ],
)
async def test_commands_that_cannot_be_started(tmp_path, more, problem):
    async with running(tmp_path, **more) as server:
        assert problem in server.problem
        assert server.state is State.FAILED


async def test_no_secret_in_any_sentence(tmp_path):
    program = f"import sys; print('bad {SECRET} here', file=sys.stderr)"
    more = {"args": ("-c", program), "env": {"KEY": SECRET}}
    async with running(tmp_path, **more) as server:
        assert server.problem == 'the process ended with exit status 0; it said "bad (hidden) here"'


async def test_children_of_children_end_too(tmp_path):
    async with running(tmp_path, "parent") as server:
        assert server.state is State.READY
        await until(lambda: len(listed_in(tmp_path / "pids")) == 2)
    assert await all_gone(tmp_path / "pids", 2)


async def test_a_deaf_child_is_ended_within_a_second(tmp_path):
    async with running(tmp_path, "deaf", connect_timeout=0.5) as server:
        began = trio.current_time()
        server.stop()
        await until(lambda: server.state is State.CLOSED)
        assert trio.current_time() - began < 2
    assert await all_gone(tmp_path / "pids", 0)
    assert GUARD._worker is None
