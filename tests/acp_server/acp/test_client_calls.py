"""What is asked of the client beside files to read: writes, terminals, permission. Any answer may come."""

from pathlib import Path

import pytest
import trio

from acp_server.acp.client import ANSWER_TIME_LIMIT, AcpClient
from acp_server.acp.client_options import WireOptions, wire_options
from acp_server.wire.errors import ClientCallError
from runtime.ports import ExitStatus, PermissionOption, PermissionOutcome, TerminalCommand, TerminalOutput
from runtime.values.errors import ToolError
from runtime.values.events import FileDiff, Location, ToolCallStarted
from schemas.acp.initialize import ClientCapabilities
from tests.support.acp_schema import check_params

FILE = Path("/project/a.py")
COMMAND = TerminalCommand("/bin/sh", ("-c", "make"), Path("/project"), 1000)
CALL = ToolCallStarted(
    "c1",
    "edit_file",
    "Edit a",
    "edit",
    {"path": "a"},
    (Location("/project/a"),),
    diffs=(FileDiff("/a", "x", "y"),),
)
OPTIONS = [PermissionOption("yes", "Allow", "allow_once"), PermissionOption("no", "Reject", "reject_once")]
GONE = ClientCallError(-32601, "Method not found")
DENIED = ClientCallError(-32603, "denied by the user")


class Wire:
    """A connection whose peer answers each method from a table; what is not in it never gets an answer."""

    def __init__(self, **answers: object) -> None:
        self.answers = answers
        self.calls: list[tuple[str, dict[str, object]]] = []

    async def notify(self, method: str, params: dict[str, object]) -> None:
        raise AssertionError("nothing is notified")

    def notify_nowait(self, method: str, params: dict[str, object]) -> None:
        raise AssertionError("nothing is notified")

    async def call(self, method: str, params: dict[str, object]) -> object:
        self.calls.append((method, params))
        check_params(method, params)
        name = method.partition("/")[2]
        if name not in self.answers:
            await trio.sleep_forever()
        await trio.lowlevel.checkpoint()
        answer = self.answers[name]
        if isinstance(answer, Exception):
            raise answer
        return answer


def client(**answers: object) -> tuple[AcpClient, Wire]:
    wire = Wire(**answers)
    return AcpClient(wire, WireOptions(write_text_file=True, terminal=True)), wire


def test_what_is_offered():
    offered = {"fs": {"writeTextFile": True}, "terminal": True}
    options = wire_options(ClientCapabilities.model_validate(offered))
    assert (options.read_text_file, options.write_text_file, options.terminal) == (False, True, True)
    wrongs: list[dict[str, object]] = [
        {},
        {"fs": {"writeTextFile": "yes"}, "terminal": 1},
        {"fs": None, "terminal": {}},
    ]
    for wrong in wrongs:
        options = wire_options(ClientCapabilities.model_validate(wrong))
        assert (options.write_text_file, options.terminal) == (False, False)


async def test_what_is_not_offered_is_never_asked():
    wire = Wire()
    bare = AcpClient(wire, WireOptions())
    assert await bare.write_text_file("S", FILE, "x") is False
    assert await bare.create_terminal("S", COMMAND) is None
    assert wire.calls == []


# ---------------------------------------------------------------- writes


@pytest.mark.parametrize("answer", [{}, None, {"_meta": {}}, "odd"])
async def test_a_write(answer):
    asked, wire = client(write_text_file=answer)
    assert await asked.write_text_file("S", FILE, "text") is True
    assert wire.calls == [("fs/write_text_file", {"sessionId": "S", "path": str(FILE), "content": "text"})]


async def test_a_method_that_is_not_there_in_spite_of_the_offer_means_the_disk():
    asked, _ = client(write_text_file=GONE, create=GONE)
    assert await asked.write_text_file("S", FILE, "text") is False
    assert await asked.create_terminal("S", COMMAND) is None


async def test_a_refusal_is_final():
    asked, _ = client(write_text_file=DENIED, create=DENIED)
    with pytest.raises(ToolError, match="the editor would not write the file: denied by the user"):
        await asked.write_text_file("S", FILE, "text")
    with pytest.raises(ToolError, match="the editor would not start a terminal: denied by the user"):
        await asked.create_terminal("S", COMMAND)


async def test_no_answer_in_time(autojump_clock):
    asked, _ = client()
    before = trio.current_time()
    for waiting in (asked.write_text_file("S", FILE, "x"), asked.create_terminal("S", COMMAND)):
        with pytest.raises(ToolError, match="did not answer"):
            await waiting
    assert trio.current_time() - before == 2 * ANSWER_TIME_LIMIT


# ---------------------------------------------------------------- terminals


async def test_a_terminal_from_its_start_to_its_end():
    status = {"exitCode": 1, "signal": None}
    asked, wire = client(
        create={"terminalId": "t"},
        output={"output": "x", "truncated": True, "exitStatus": status},
        wait_for_exit=status,
        kill={},
        release=None,
    )
    assert await asked.create_terminal("S", COMMAND) == "t"
    assert await asked.wait_for_exit("S", "t") == ExitStatus(1)
    assert await asked.terminal_output("S", "t") == TerminalOutput("x", True, ExitStatus(1))
    await asked.kill_terminal("S", "t")
    await asked.release_terminal("S", "t")
    made = {
        "sessionId": "S",
        "command": "/bin/sh",
        "args": ["-c", "make"],
        "cwd": "/project",
        "outputByteLimit": 1000,
    }
    assert wire.calls[0] == ("terminal/create", made)
    assert {method for method, _ in wire.calls[1:]} == {
        f"terminal/{name}" for name in ("wait_for_exit", "output", "kill", "release")
    }
    assert all(params == {"sessionId": "S", "terminalId": "t"} for _, params in wire.calls[1:])


@pytest.mark.parametrize("answer", [None, {}, {"terminalId": ""}, {"terminalId": 3}, [], "t"])
async def test_a_terminal_without_an_id(answer):
    asked, _ = client(create=answer)
    with pytest.raises(ToolError, match="started no terminal"):
        await asked.create_terminal("S", COMMAND)


@pytest.mark.parametrize("answer", [None, {}, {"output": 3, "truncated": 1, "exitStatus": "x"}, []])
async def test_an_output_that_says_nothing(answer):
    asked, _ = client(output=answer)
    assert await asked.terminal_output("S", "t") == TerminalOutput("")


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (None, ExitStatus()),
        ({"exitCode": True, "signal": 9}, ExitStatus()),
        ({"exitCode": None, "signal": "SIGKILL"}, ExitStatus(None, "SIGKILL")),
    ],
)
async def test_how_a_process_ended(answer, status):
    asked, _ = client(wait_for_exit=answer)
    assert await asked.wait_for_exit("S", "t") == status


async def test_a_terminal_that_fails_on_the_way():
    asked, _ = client(output=DENIED, wait_for_exit=DENIED, kill=DENIED, release=DENIED)
    for waiting in (asked.terminal_output("S", "t"), asked.wait_for_exit("S", "t")):
        with pytest.raises(ToolError, match="denied by the user"):
            await waiting
    await asked.kill_terminal("S", "t")
    await asked.release_terminal("S", "t")


async def test_nobody_waits_long_for_a_terminal_that_is_given_up(autojump_clock):
    asked, _ = client()
    before = trio.current_time()
    await asked.release_terminal("S", "t")
    assert trio.current_time() - before < 5


# ---------------------------------------------------------------- permission


async def test_permission_shows_the_call_and_gives_the_option():
    asked, wire = client(request_permission={"outcome": {"outcome": "selected", "optionId": "yes"}})
    assert await asked.request_permission("S", CALL, OPTIONS) == PermissionOutcome(OPTIONS[0])
    ((method, params),) = wire.calls
    assert method == "session/request_permission"
    call = params["toolCall"]
    assert isinstance(call, dict)
    assert (call["toolCallId"], call["title"], call["kind"]) == ("c1", "Edit a", "edit")
    assert call["content"] == [{"type": "diff", "path": "/a", "oldText": "x", "newText": "y"}]
    assert params["options"] == [
        {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
        {"optionId": "no", "name": "Reject", "kind": "reject_once"},
    ]


async def test_a_cancelled_permission_stops_the_turn():
    asked, _ = client(request_permission={"outcome": {"outcome": "cancelled"}})
    assert await asked.request_permission("S", CALL, OPTIONS) == PermissionOutcome(cancelled=True)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        {},
        [],
        "yes",
        {"outcome": None},
        {"outcome": "selected", "optionId": "yes"},
        {"outcome": {"outcome": "selected"}},
        {"outcome": {"outcome": "selected", "optionId": "YES"}},
        {"outcome": {"outcome": "selected", "optionId": ["yes"]}},
        {"outcome": {"outcome": "allowed", "optionId": "yes"}},
        GONE,
        DENIED,
    ],
    ids=repr,
)
async def test_anything_else_allows_nothing(answer):
    asked, _ = client(request_permission=answer)
    assert await asked.request_permission("S", CALL, OPTIONS) == PermissionOutcome()


async def test_a_cancelled_turn_ends_the_wait_for_permission(autojump_clock):
    asked, _ = client()
    with trio.move_on_after(1000) as turn:
        await asked.request_permission("S", CALL, OPTIONS)
    assert turn.cancelled_caught
