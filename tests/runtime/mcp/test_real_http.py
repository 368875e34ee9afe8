"""A real server on loopback, reached by streamable HTTP and by server-sent events."""

import gc
import json
import subprocess
import sys
from functools import partial

import h11
import pytest
import trio

from runtime.mcp.remote_tool import ServerTrouble
from runtime.mcp.server import State
from runtime.mcp.settings import ServerSettings
from tests.runtime.mcp.real import DATA, owned, text_of
from tests.support.processes import until

# The SDK leaves streams of httpx2 to the garbage collector, which trio warns of.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
async def collected():
    """Collected within the test, they disturb no other."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def address():
    command = [sys.executable, str(DATA / "http_server.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


@pytest.mark.parametrize(("kind", "path"), [("http", "/mcp"), ("sse", "/sse")])
async def test_over_http(tmp_path, address, kind, path):
    settings = ServerSettings(
        "s", kind, url=f"{address}{path}", headers={"Authorization": "Bearer sesame-1234"}
    )
    async with owned(settings, tmp_path) as server:
        assert (server.state, server.problem) == (State.READY, "")
        assert text_of(await server.call("add", {"a": 2, "b": 3})) == "5"


async def test_http_that_refuses_or_is_not_there(tmp_path, address):
    wrong = {"Authorization": "Bearer wrong-wrong"}
    for settings, problem, state in (
        (ServerSettings("s", "http", url=f"{address}/mcp"), "it refused the access (HTTP 401)", State.FAILED),
        (ServerSettings("s", "sse", url=f"{address}/sse", headers=wrong), "HTTP 401", State.FAILED),
        (ServerSettings("s", "http", url="http://127.0.0.1:9/mcp"), "it cannot be reached", State.WAITING),
        (ServerSettings("s", "http", url="gopher://x"), "its address cannot be used", State.FAILED),
        (ServerSettings("s", "http", url=address, bearer_env="NOT_SET"), "set the environment", State.FAILED),
    ):
        async with owned(settings, tmp_path) as server:
            assert problem in server.problem
            assert server.state is state
            assert "wrong-wrong" not in server.problem


async def test_a_bearer_token_from_a_variable(tmp_path, address, monkeypatch):
    monkeypatch.setenv("HTTP_TOKEN", "sesame-1234")
    settings = ServerSettings("s", "http", url=f"{address}/mcp", bearer_env="HTTP_TOKEN")
    async with owned(settings, tmp_path) as server:
        assert server.state is State.READY


class Fickle:
    """A small streamable HTTP server in the test's own process, which answers as `mood` says."""

    def __init__(self) -> None:
        self.mood = "fine"
        self.calls = 0

    async def serve(self, stream: trio.SocketStream) -> None:
        connection = h11.Connection(h11.SERVER)
        body = b""
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await stream.receive_some())
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                await self.answer(stream, connection, body)
                body = b""
                if connection.our_state is not h11.DONE:
                    return
                connection.start_next_cycle()
            elif isinstance(event, h11.ConnectionClosed):
                return

    async def answer(self, stream: trio.SocketStream, connection: h11.Connection, body: bytes) -> None:
        asked = json.loads(body) if body else {}
        status, result = 200, RESULTS.get(asked.get("method", ""))
        if asked.get("method") == "tools/call":
            self.calls += 1
            if self.mood == "drops":
                await stream.aclose()
                return
            status = 404 if self.mood == "forgets" else 200
        elif result is None:
            status = 202 if body else 405
        text = (
            json.dumps({"jsonrpc": "2.0", "id": asked.get("id"), "result": result}).encode()
            if result
            else b""
        )
        headers = [("content-type", "application/json"), ("content-length", str(len(text) * (status == 200)))]
        await stream.send_all(
            connection.send(h11.Response(status_code=status, headers=[*headers, ("mcp-session-id", "s1")]))
            or b""
        )
        if status == 200:
            await stream.send_all(connection.send(h11.Data(data=text)) or b"")
        await stream.send_all(connection.send(h11.EndOfMessage()) or b"")


RESULTS: dict[str, object] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "fickle", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "fine"}]},
}


@pytest.mark.parametrize(
    ("mood", "told"), [("drops", "the connection was closed"), ("forgets", "HTTP 404: Session terminated")]
)
async def test_a_broken_connection_is_made_anew(tmp_path, nursery, monkeypatch, mood, told):
    monkeypatch.setattr("runtime.mcp.server.DELAYS", (0.1, 0.1))
    fickle = Fickle()
    listeners = await nursery.start(partial(trio.serve_tcp, fickle.serve, 0, host="127.0.0.1"))
    settings = ServerSettings("s", "http", url=f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}/mcp")
    async with owned(settings, tmp_path) as server:
        assert text_of(await server.call("t", {})) == "fine"
        fickle.mood = mood
        with pytest.raises(ServerTrouble, match=told):
            await server.call("t", {})
        fickle.mood = "fine"
        await until(lambda: server.state is not State.READY)
        await until(lambda: server.state is State.READY)
        assert text_of(await server.call("t", {})) == "fine"
        assert fickle.calls == 3
    nursery.cancel_scope.cancel()
