"""What is not let in: without the token, from elsewhere, too large, too slow, too many, out of bounds."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress

import pytest
import trio

from acp_server.gateway import serve
from tests.gateway.rig import TOKEN, Gateway, body_of, gateway, head, raw, status_of
from tests.process.homes import Home
from tests.support.processes import until
from tests.support.wire import PATIENCE

BEARER = f"Authorization: Bearer {TOKEN}"
UPGRADE = (
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version: 13",
)
API = "/api/sessions"


@pytest.fixture
async def it(home: Home) -> AsyncIterator[Gateway]:
    """A gateway that lets one more host and one more origin in."""
    hosts, origins = ("gate.example.org",), ("https://gate.example.org",)
    async with gateway(home, allowed_hosts=hosts, allowed_origins=origins) as made:
        yield made


REFUSED: list[tuple[str, int, bytes]] = [
    ("no token", 401, head(f"GET {API} HTTP/1.1")),
    ("wrong token", 401, head(f"GET {API} HTTP/1.1", "Authorization: Bearer " + "x" * 43)),
    ("half the token", 401, head(f"GET {API} HTTP/1.1", f"Authorization: Bearer {TOKEN[:-1]}")),
    ("more than the token", 401, head(f"GET {API} HTTP/1.1", f"{BEARER}x")),
    ("a wrong token beside the right one", 401,
     head(f"GET {API} HTTP/1.1", BEARER, "Authorization: Bearer x")),
    ("a wrong subprotocol beside the right header", 401,
     head("GET /acp HTTP/1.1", *UPGRADE, BEARER, "Sec-WebSocket-Protocol: acp, bearer.x", close=False)),
    ("another scheme", 401, head(f"GET {API} HTTP/1.1", f"Authorization: Basic {TOKEN}")),
    ("bytes for a token", 401, head(f"GET {API} HTTP/1.1", "Authorization: Bearer \xe9")),
    ("the token in the query", 401, head(f"GET {API}?token={TOKEN}&access_token={TOKEN} HTTP/1.1")),
    ("no token for events", 401, head("GET /api/events HTTP/1.1")),
    ("no token, no such route", 401, head("GET /api/nothing HTTP/1.1")),
    ("no token for the socket", 401, head("GET /acp HTTP/1.1", *UPGRADE, close=False)),
    ("no token for the feed", 401, head("GET /api/events/ws HTTP/1.1", *UPGRADE, close=False)),
    ("a socket anywhere", 401, head("GET / HTTP/1.1", *UPGRADE, close=False)),
    ("wrong token as subprotocol", 401,
     head("GET /acp HTTP/1.1", *UPGRADE, "Sec-WebSocket-Protocol: acp, bearer.x", close=False)),
    ("another host", 421, head(f"GET {API} HTTP/1.1", BEARER, host="evil.example.org")),
    ("another host with our port", 421, head("GET / HTTP/1.1", host="evil.example.org:8017")),
    ("a host that begins like ours", 421, head("GET / HTTP/1.1", host="localhost.evil.org")),
    ("another address", 421, head("GET / HTTP/1.1", host="192.0.2.1")),
    ("no host", 400, head("GET / HTTP/1.1", host="")),
    ("no host in the old version", 400, head("GET / HTTP/1.0", host="")),
    ("two hosts", 400, head("GET / HTTP/1.1", "Host: localhost")),
    ("a host that is none", 400, head("GET / HTTP/1.1", host="localhost/../x")),
    ("a user in the host", 400, head("GET / HTTP/1.1", host="localhost@evil.org")),
    ("another origin", 403, head(f"GET {API} HTTP/1.1", BEARER, "Origin: https://evil.example.org")),
    ("no origin in particular", 403, head(f"GET {API} HTTP/1.1", BEARER, "Origin: null")),
    ("our origin on another port", 403, head(f"GET {API} HTTP/1.1", BEARER, "Origin: http://127.0.0.1:1")),
    ("another origin at the socket", 403,
     head("GET /acp HTTP/1.1", *UPGRADE, BEARER, "Origin: https://evil.example.org", close=False)),
    ("a body", 413, head(f"GET {API} HTTP/1.1", BEARER, "Content-Length: 5") + b"hello"),
    ("a huge body", 413, head(f"POST {API} HTTP/1.1", BEARER, "Content-Length: 99999999999")),
    ("a body in chunks", 413,
     head(f"POST {API} HTTP/1.1", BEARER, "Transfer-Encoding: chunked") + b"5\r\nhe"),
    ("a huge head", 431, head(f"GET {API} HTTP/1.1", BEARER, "X: " + "x" * 20_000)),
    ("a huge path", 431, head(f"GET /{'x' * 20_000} HTTP/1.1", BEARER)),
    ("the way up", 400, head("GET /../../etc/passwd HTTP/1.1")),
    ("the way up in the middle", 400, head("GET /static/../../etc/passwd HTTP/1.1")),
    ("the way up in code", 400, head("GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1")),
    ("the way up, half in code", 400, head("GET /static/.%2e/x HTTP/1.1")),
    ("a separator in code", 400, head("GET /..%2fetc%2fpasswd HTTP/1.1")),
    ("a separator of another system", 400, head("GET /..%5cx HTTP/1.1")),
    ("the same as it is", 400, head("GET /..\\x HTTP/1.1")),
    ("a NUL", 400, head("GET /x%00.html HTTP/1.1")),
    ("an empty part", 400, head("GET //etc/passwd HTTP/1.1")),
    ("an address for a path", 400, head("GET http://127.0.0.1/api/sessions HTTP/1.1", BEARER)),
    ("another one", 400, head("GET http://evil.example.org/ HTTP/1.1")),
    ("a proxy's request", 400, head("CONNECT evil.example.org:443 HTTP/1.1")),
    ("all of the server", 400, head("OPTIONS * HTTP/1.1")),
    ("a line end in the path", 400, head("GET /a\nb HTTP/1.1")),
    ("the next version", 0, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ("a change of version", 101,
     head("GET / HTTP/1.1", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__", UPGRADE[1], close=False)),
    ("another version", 505, head("GET / HTTP/9.9")),
    ("no HTTP at all", 400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"),
    ("writing", 405, head(f"POST {API} HTTP/1.1", BEARER)),
    ("deleting", 405, head(f"DELETE {API} HTTP/1.1", BEARER)),
    ("a path of ours with more behind it", 404, head(f"GET {API}/ HTTP/1.1", BEARER)),
    ("nothing there", 404, head("GET /api/nothing HTTP/1.1", BEARER)),
    ("the socket without a socket", 404, head("GET /acp HTTP/1.1", BEARER)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "request_"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
async def test_refused(it: Gateway, status: int, request_: bytes):
    answer = await raw(it.port, request_)
    assert status_of(answer) == status, answer
    assert TOKEN.encode() not in answer
    body = answer.partition(b"\r\n\r\n")[2]
    # Without a body it is the server's own answer, to what is not even a request.
    assert body or status in (0, 101, 400)
    if body:
        assert body_of(answer)["error"]["status"] == status
        assert b"cache-control: no-store" in answer
        assert b"frame-ancestors 'none'" in answer


SENT = "what-was-sent"


@pytest.mark.parametrize(
    "target",
    [
        *(f"{API}{more}" for more in (f"/{SENT}", f"/{SENT}/", f"/{SENT}/context")),
        *(f"{API}?{query}" for query in (f"{SENT}=1", f"limit={SENT}", f"cursor={SENT}")),
        f"/api/events?types={SENT}",
        f"/{SENT}",
    ],
)
async def test_a_refusal_repeats_nothing_of_what_was_sent(it: Gateway, target: str):
    answer = await raw(it.port, head(f"GET {target} HTTP/1.1", BEARER))
    assert status_of(answer) in (400, 404)
    assert SENT.encode() not in answer


TAKEN: list[tuple[str, bytes]] = [
    ("the token", head(f"GET {API} HTTP/1.1", BEARER)),
    ("the scheme in other letters", head(f"GET {API} HTTP/1.1", f"authorization: bearer {TOKEN}")),
    ("by name", head(f"GET {API} HTTP/1.1", BEARER, host="localhost:1")),
    ("by another name", head(f"GET {API} HTTP/1.1", BEARER, host="Gate.Example.org.")),
    ("from the origin that is allowed", head(f"GET {API} HTTP/1.1", BEARER, "Origin: https://gate.example.org")),
    ("from our own page", head(f"GET {API} HTTP/1.1", BEARER, "Origin: http://127.0.0.1")),
    ("the page, without the token", head("GET / HTTP/1.1")),
    ("its script, without the token", head("GET /static/app.js HTTP/1.1")),
    ("with an empty body", head(f"GET {API} HTTP/1.1", BEARER, "Content-Length: 0")),
]  # fmt: skip


@pytest.mark.parametrize("request_", [row[1] for row in TAKEN], ids=[row[0] for row in TAKEN])
async def test_taken(it: Gateway, request_: bytes):
    answer = await raw(it.port, request_)
    assert status_of(answer) == 200, answer
    assert b"x-content-type-options: nosniff" in answer
    assert b"server:" not in answer.partition(b"\r\n\r\n")[0].lower()


async def test_a_head_that_does_not_come_is_not_waited_for(home: Home, monkeypatch):
    monkeypatch.setattr(serve, "HEAD_SECONDS", 0.5)
    async with gateway(home) as it:
        stream = await trio.open_tcp_stream("127.0.0.1", it.port)
        async with stream:
            with trio.fail_after(PATIENCE):
                await drip(stream, head("GET / HTTP/1.1", "X: " + "x" * 10_000))


async def drip(stream: trio.SocketStream, data: bytes) -> None:
    """Send a byte now and then, until the other side closes."""
    async with trio.open_nursery() as nursery:

        async def wait() -> None:
            with suppress(trio.BrokenResourceError):
                assert await stream.receive_some(1000) == b""
            nursery.cancel_scope.cancel()

        nursery.start_soon(wait)
        for at in range(len(data)):
            try:
                await stream.send_all(data[at : at + 1])
            except trio.BrokenResourceError:
                return
            await trio.sleep(0.05)


async def test_a_body_that_does_not_come_is_not_waited_for(it: Gateway):
    answer = await raw(
        it.port, head(f"POST {API} HTTP/1.1", BEARER, "Content-Length: 100", close=False) + b"x"
    )
    assert status_of(answer) == 413


async def test_too_many_connections(home: Home):
    async with gateway(home, max_connections=3) as it, AsyncExitStack() as stack:
        held = [await trio.open_tcp_stream("127.0.0.1", it.port) for _ in range(3)]
        for stream in held:
            stack.push_async_callback(stream.aclose)
            await stream.send_all(b"GET")
        with trio.fail_after(PATIENCE):
            await until(lambda: len(it.state.wires) == 3)
        assert await raw(it.port, head("GET / HTTP/1.1")) == b""
        await held.pop().aclose()
        with trio.fail_after(PATIENCE):
            await until(lambda: len(it.state.wires) == 2)
        assert status_of(await raw(it.port, head(f"GET {API} HTTP/1.1", BEARER))) == 200


async def test_too_many_requests(home: Home):
    async with gateway(home, requests_per_second=1) as it:
        answers = [await raw(it.port, head(f"GET {API} HTTP/1.1", BEARER)) for _ in range(12)]
        assert [status_of(answer) for answer in answers[:10]] == [200] * 10
        assert status_of(answers[-1]) == 429
        assert b"retry-after: " in answers[-1]


async def test_one_connection_does_not_get_by_the_limit(home: Home):
    async with gateway(home, requests_per_second=1) as it:
        many = head("GET / HTTP/1.1", close=False) * 30 + head("GET / HTTP/1.1")
        answer = await raw(it.port, many)
        assert answer.count(b"HTTP/1.1 429") >= 20


async def test_a_failure_inside_says_nothing_of_it(it: Gateway, monkeypatch, caplog):
    secret = "the-key-of-a-provider"

    async def fail(**wanted: object) -> object:
        raise RuntimeError(secret)

    monkeypatch.setattr(it.state.app.store(), "list_sessions", fail)
    answer = await raw(it.port, head(f"GET {API} HTTP/1.1", BEARER))
    assert status_of(answer) == 500
    assert secret.encode() not in answer
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["status"] == 500
    caplog.clear()
