"""The transport against servers that send exactly these bytes."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import cast

import httpx2
import pytest
import trio

from runtime.providers.http.connection import HEAD_BYTES, Body
from runtime.providers.http.transport import KEEPALIVE_SECONDS, KeepAliveTransport
from runtime.values.model import at_once

TLS = Path(__file__).resolve().parents[2] / "data" / "tls"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"


class Server:
    """Answers each request of each connection with the next of `answers`; None hangs up."""

    def __init__(self, answers: list[bytes | None]) -> None:
        self.answers = answers
        self.seen: list[bytes] = []
        self.connections = 0
        self.port = 0

    async def serve(self, stream: trio.abc.Stream) -> None:
        self.connections += 1
        with suppress(trio.BrokenResourceError):
            await self._answer(stream)
            await stream.aclose()

    async def _answer(self, stream: trio.abc.Stream) -> None:
        while data := await stream.receive_some():
            self.seen.append(bytes(data))
            answer = self.answers.pop(0)
            if answer is None:
                return
            for piece in answer.split(b"|"):
                await stream.send_all(piece)
                await trio.sleep(0.01)
            if b"connection: close" in answer:
                return


@asynccontextmanager
async def serving(*answers: bytes | None, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(list(answers))
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        server.port = listeners[0].socket.getsockname()[1]
        wrapped = [trio.SSLListener(one, tls, https_compatible=True) if tls else one for one in listeners]
        nursery.start_soon(trio.serve_listeners, server.serve, wrapped)
        with trio.fail_after(10):
            yield server
        nursery.cancel_scope.cancel()


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=TLS / "cert.pem")


@asynccontextmanager
async def opened(tls: ssl.SSLContext | None = None) -> AsyncIterator[KeepAliveTransport]:
    transport = KeepAliveTransport(tls or ssl.create_default_context())
    try:
        yield transport
    finally:
        await transport.aclose()


def request(
    server: Server,
    *,
    scheme: str = "http",
    headers: dict[str, str] | None = None,
    ready: Callable[[], Awaitable[None]] = at_once,
    read: float = 5,
) -> httpx2.Request:
    named = {"host": "here", "content-length": "4", **(headers or {})}
    url = f"{scheme}://localhost:{server.port}/v1/x?y=1"
    if scheme == "http":
        url = url.replace("localhost", "127.0.0.1")
    return httpx2.Request(
        "POST", url, headers=named, stream=Body(b"body", ready), extensions={"timeout": {"read": read}}
    )


async def exchange(transport: KeepAliveTransport, asked: httpx2.Request) -> tuple[int, bytes]:
    response = await transport.handle_async_request(asked)
    try:
        return response.status_code, b"".join(
            [piece async for piece in cast("httpx2.AsyncByteStream", response.stream)]
        )
    finally:
        await response.aclose()


async def ask(answer: bytes | None, *, read: float = 5) -> tuple[int, bytes] | httpx2.HTTPError:
    async with serving(answer) as server, opened() as transport:
        try:
            return await exchange(transport, request(server, read=read))
        except httpx2.HTTPError as error:
            return error


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        (OK, (200, b"hi")),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r|\nh\r\n1\r\ni|\r\n0\r\n\r\n",
            (200, b"hi"),
        ),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nt: x\r\n\r\n", (200, b"hi")),
        (b"HTTP/1.1 100 Continue\r\n\r\n|" + OK, (200, b"hi")),
        (b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + OK, (200, b"hi")),
        (b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nuntil |the end", (200, b"until the end")),
        (b"HTTP/1.0 503 No\r\nconnection: close\r\n\r\n", (503, b"")),
        (b"HTTP/1.1 204 Nothing\r\n\r\n", (204, b"")),
        (b"HT|TP/1.1 429 Slow\r|\ncontent-le|ngth: 0\r\n\r\n", (429, b"")),
    ],
)
async def test_responses_in_all_forms(answer, wanted):
    assert await ask(answer) == wanted


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (None, "without a response"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "not an HTTP response"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\nhi", "in the middle"),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n9\r\nhi",
            "in the middle",
        ),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhi", "not an HTTP response"),
        (b"HTTP/1.1 101 Switch\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", "not an HTTP response"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * HEAD_BYTES, "does not end"),
    ],
)
async def test_what_is_no_response(answer, error):
    found = await ask(answer)
    assert isinstance(found, httpx2.RemoteProtocolError)
    assert error in str(found)


async def test_the_bytes_of_a_request():
    async with serving(OK) as server, opened() as transport:
        await exchange(transport, request(server))
    assert server.seen == [b"POST /v1/x?y=1 HTTP/1.1\r\nhost: here\r\ncontent-length: 4\r\n\r\nbody"]


async def test_no_byte_leaves_before_it_is_ready():
    may = trio.Event()
    async with serving(OK) as server, opened() as transport, trio.open_nursery() as nursery:
        asked = request(server, ready=may.wait)
        nursery.start_soon(exchange, transport, asked)
        with trio.move_on_after(0.1):
            await trio.sleep_forever()
        assert (server.connections, server.seen) == (1, [])
        may.set()
    assert len(server.seen) == 1


async def test_a_header_cannot_smuggle_another():
    async with serving(OK) as server:
        asked = request(server)
        asked.headers["x"] = "1\r\nevil: yes"
        async with opened() as transport:
            with pytest.raises(httpx2.LocalProtocolError):
                await exchange(transport, asked)
    assert server.seen == []


async def test_a_connection_serves_again_if_it_was_read_to_its_end():
    async with serving(OK, OK, OK.replace(b"2\r\n", b"4\r\n") + b"|ho") as server, opened() as transport:
        for _ in range(2):
            await exchange(transport, request(server))
        assert server.connections == 1
        left_early = await transport.handle_async_request(request(server))
        await left_early.aclose()
        server.answers.append(OK)
        await exchange(transport, request(server))
        assert server.connections == 2


async def test_two_at_a_time_get_a_connection_each():
    async with serving(OK, OK) as server, opened() as transport:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(exchange, transport, request(server))
            nursery.start_soon(exchange, transport, request(server))
        assert server.connections == 2


async def test_a_connection_that_the_server_closed_is_not_used_again():
    closing = OK.replace(b"\r\n\r\n", b"\r\nx-connection: close\r\n\r\n")
    async with serving(closing, OK) as server, opened() as transport:
        await exchange(transport, request(server))
        await trio.sleep(0.05)
        assert await exchange(transport, request(server)) == (200, b"hi")
        assert server.connections == 2


async def test_a_connection_that_waited_too_long_is_not_used_again(autojump_clock):
    autojump_clock.autojump_threshold = 0.05
    server = Server([OK, OK])
    async with opened() as transport, trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        server.port = listeners[0].socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, server.serve, listeners)
        await exchange(transport, request(server))
        await trio.sleep(KEEPALIVE_SECONDS + 1)
        await exchange(transport, request(server))
        nursery.cancel_scope.cancel()
    assert server.connections == 2


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhi"], ids=["head", "body"]
)
async def test_a_silent_server_is_given_up(answer):
    assert isinstance(await ask(answer, read=0.1), httpx2.ReadTimeout)


async def test_nobody_listens():
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    server = Server([])
    server.port = listeners[0].socket.getsockname()[1]
    await listeners[0].aclose()
    async with opened() as transport:
        with pytest.raises(httpx2.ConnectError):
            await exchange(transport, request(server))


async def test_encrypted():
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(TLS / "cert.pem", TLS / "key.pem")
    async with serving(OK, OK, tls=tls) as server, opened(trusting()) as transport:
        for _ in range(2):
            assert await exchange(transport, request(server, scheme="https")) == (200, b"hi")
        assert server.connections == 1


async def test_a_certificate_that_nobody_vouches_for():
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(TLS / "cert.pem", TLS / "key.pem")
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    server = Server([])
    server.port = listeners[0].socket.getsockname()[1]

    async def serve(stream: trio.SSLStream[trio.SocketStream]) -> None:
        with pytest.raises(trio.BrokenResourceError):
            await stream.do_handshake()

    async with trio.open_nursery() as nursery:
        secure = [trio.SSLListener(one, tls) for one in listeners]
        nursery.start_soon(trio.serve_listeners, serve, secure)
        with pytest.raises(httpx2.ConnectError) as caught:
            await exchange(KeepAliveTransport(ssl.create_default_context()), request(server, scheme="https"))
        nursery.cancel_scope.cancel()
    causes = []
    error: BaseException | None = caught.value
    while error is not None:
        causes.append(str(error))
        error = error.__cause__ or error.__context__
    assert any("CERTIFICATE_VERIFY_FAILED" in one for one in causes)


async def test_a_cancel_closes_at_once():
    async with (
        serving(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhi", OK) as server,
        opened() as transport,
    ):
        with trio.move_on_after(0.1):
            await exchange(transport, request(server))
        assert await exchange(transport, request(server)) == (200, b"hi")
        assert server.connections == 2
