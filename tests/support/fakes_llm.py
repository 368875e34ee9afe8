"""A chat completions server on loopback that answers with given bytes, for tests of the HTTP side."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio


@dataclass(frozen=True)
class Canned:
    """One answer. chunks: sent as HTTP chunks of their own. raw: sent in place of all else.

    ending: 'end' ends the body properly, 'cut' closes the connection before that, 'hang' sends
    nothing more until the client goes. together: all in one write.
    """

    chunks: tuple[bytes, ...] = ()
    status: int = 200
    headers: tuple[str, ...] = ()
    content_type: str = "text/event-stream"
    ending: str = "end"
    raw: bytes | None = None
    together: bool = False


@dataclass(frozen=True)
class Asked:
    """One request as it came: head lines and the body's JSON."""

    line: str
    headers: dict[str, str]
    body: dict[str, object]


@dataclass
class FakeServer:
    """What the tests look at."""

    base_url: str = ""
    answers: list[Canned] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    client_left: trio.Event = field(default_factory=trio.Event)


def sse(*events: object, done: bool = True) -> tuple[bytes, ...]:
    """Each value as an event, then [DONE]."""
    lines = [f"data: {json.dumps(event)}\n\n".encode() for event in events]
    return (*lines, b"data: [DONE]\n\n") if done else tuple(lines)


def text_event(text: str, finish: str | None = None) -> dict[str, object]:
    """A chunk with a piece of text."""
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}


HELLO = Canned(sse(text_event("Hel"), text_event("lo"), text_event("", "stop")))


@asynccontextmanager
async def fake_server(*answers: Canned) -> AsyncIterator[FakeServer]:
    """Serves the answers in order, then the last one again and again."""
    server = FakeServer(answers=list(answers))

    async def serve(stream: trio.SocketStream) -> None:
        server.connections += 1
        try:
            await _serve(server, stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            server.client_left.set()

    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, serve, listeners)
        server.base_url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}/v1"
        try:
            yield server
        finally:
            nursery.cancel_scope.cancel()


async def _serve(server: FakeServer, stream: trio.SocketStream) -> None:
    while (asked := await _request(stream)) is not None:
        server.asked.append(asked)
        answer = server.answers[min(len(server.asked), len(server.answers)) - 1]
        await _send(stream, answer)
        if answer.ending == "hang":
            await stream.receive_some()
            server.client_left.set()
            return
        if answer.ending == "cut":
            return await stream.aclose()


async def _request(stream: trio.SocketStream) -> Asked | None:
    data = b""
    while b"\r\n\r\n" not in data:
        more = await stream.receive_some()
        if not more:
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    line, *rest = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (text.partition(":") for text in rest)}
    while len(body) < int(headers.get("content-length", "0")):
        body += await stream.receive_some()
    return Asked(line, headers, json.loads(body or b"{}"))


async def _send(stream: trio.SocketStream, answer: Canned) -> None:
    if answer.raw is not None:
        return await stream.send_all(answer.raw)
    head = (
        f"HTTP/1.1 {answer.status} X\r\nContent-Type: {answer.content_type}\r\nTransfer-Encoding: chunked\r\n"
    )
    pieces = [(head + "".join(f"{line}\r\n" for line in answer.headers) + "\r\n").encode()]
    pieces += [b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in answer.chunks]
    if answer.ending == "end":
        pieces.append(b"0\r\n\r\n")
    for piece in [b"".join(pieces)] if answer.together else pieces:
        await stream.send_all(piece)
