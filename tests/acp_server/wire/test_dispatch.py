"""Dispatch: handlers' outcomes and exceptions become responses by the JSON-RPC rules, and nothing leaks."""

import logging
import subprocess
import sys
from collections.abc import Mapping

import pytest
import trio

from acp_server.wire.dispatch import (
    Answer,
    Failure,
    Handler,
    Later,
    Outcome,
    finish,
    invalid,
    refusal,
    response,
    start,
)
from acp_server.wire.messages import Garbage, Params
from runtime.values.errors import InvalidParams, ResourceNotFound

App = list[object]
SECRET = "/home/me/key=sk-123"


def echo(app: App, params: Mapping[str, object]) -> Answer:
    app.append(params)
    return Answer({"got": dict(params)})


def nothing(app: App, params: Mapping[str, object]) -> None:
    app.append("called")


def unknown_session(app: App, params: Mapping[str, object]) -> Answer:
    raise ResourceNotFound("No such session.", data={"sessionId": "s"})


def bug(app: App, params: Mapping[str, object]) -> Answer:
    raise OSError(SECRET)


METHODS: dict[str, Handler[App]] = {"echo": echo, "nothing": nothing, "lost": unknown_session, "bug": bug}


@pytest.mark.parametrize(
    ("method", "params", "result", "error"),
    [
        ("echo", {"a": 1}, {"got": {"a": 1}}, None),
        ("echo", None, {"got": {}}, None),
        ("echo", {"app": 1, "self": 2, "params": 3, "_meta": {}}, "any", None),
        ("echo", [1], None, {"code": -32602, "message": "params must be an object"}),
        ("nothing", None, {}, None),
        ("foo", None, None, {"code": -32601, "message": "Method not found"}),
        ("_foo", {}, None, {"code": -32601, "message": "Method not found"}),
        ("$/foo", {}, None, {"code": -32601, "message": "Method not found"}),
        ("__class__", {}, None, {"code": -32601, "message": "Method not found"}),
        ("lost", {}, None, {"code": -32002, "message": "No such session.", "data": {"sessionId": "s"}}),
        ("bug", {}, None, {"code": -32603, "message": "Internal error"}),
    ],
)
def test_from_call_to_response(method: str, params: Params, result: object, error: object) -> None:
    outcome = start(METHODS, [], method, params)
    assert not isinstance(outcome, Later)
    message = response("id", outcome)
    assert list(message) == ["jsonrpc", "result" if error is None else "error", "id"]
    assert message["jsonrpc"] == "2.0"
    assert message["id"] == "id"
    if error is not None:
        assert message["error"] == error
    elif result != "any":
        assert message["result"] == result


def test_a_bug_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    start(METHODS, [], "bug", {})
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("wholeturn.dispatch", logging.ERROR)
    assert record.exc_info is not None


async def test_work_gives_the_result() -> None:
    async def run() -> object:
        await trio.lowlevel.checkpoint()
        return {"done": True}

    assert await finish("m", Later(run)) == Answer({"done": True})


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidParams("no"), -32602),
        (ExceptionGroup("g", [OSError(SECRET), InvalidParams("no")]), -32602),
        (OSError(SECRET), -32603),
        (AssertionError(SECRET), -32603),
    ],
)
async def test_work_that_fails(error: Exception, code: int) -> None:
    async def run() -> object:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            raise error

    outcome = await finish("m", Later(run))
    assert isinstance(outcome, Failure)
    assert outcome.error.code == code
    assert SECRET not in str(response(1, outcome))


async def test_cancellation_passes_and_errors_that_come_with_it_do_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail_when_cancelled() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise OSError(SECRET)

    async def run() -> object:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            nursery.start_soon(fail_when_cancelled)
            await trio.sleep_forever()
        return {}

    outcomes: list[Outcome] = []
    with trio.CancelScope() as scope:
        scope.cancel()
        outcomes.append(await finish("m", Later(run)))
    assert (outcomes, scope.cancelled_caught) == ([], True)
    assert "m failed" in caplog.text


def test_a_line_that_is_no_request() -> None:
    message = refusal(Garbage(-32700, "Parse error"))
    assert message == {"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}, "id": None}
    assert response(None, invalid("not now"))["error"] == {"code": -32600, "message": "not now"}


def test_importing_it_is_light() -> None:
    code = (
        "import sys, acp_server.wire.dispatch;"
        "heavy = {'jsonschema', 'asyncio', 'http.server', 'oslash.state'};"
        "sys.exit(str(heavy & set(sys.modules) or '') or None)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
