"""Connections whose client goes away, or breaks the rules: sockets are given back, the log stays short."""

import json
import logging
import struct
from collections.abc import AsyncIterator

import pytest
import trio

from acp_server.gateway import serve
from tests.gateway.rig import TOKEN, Gateway, gateway, head, raw, status_of
from tests.process.homes import Home
from tests.support.processes import until
from tests.support.wire import PATIENCE

BEARER = f"Authorization: Bearer {TOKEN}"
NEVER = 10_000.0
UPGRADE = (
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version: 13",
)


@pytest.fixture
async def it(home: Home, monkeypatch) -> AsyncIterator[Gateway]:
    """A gateway that neither pings nor loses its patience meanwhile."""
    monkeypatch.setattr(serve, "HEAD_SECONDS", NEVER)
    monkeypatch.setattr(serve, "PING_SECONDS", NEVER)
    async with gateway(home) as made:
        yield made


def asking(path: str, *more: str) -> bytes:
    """A request that leaves its connection open."""
    return head(f"GET {path} HTTP/1.1", BEARER, *more, close=False)


async def all_given_back(it: Gateway) -> None:
    """No connection is left; one is had again at once."""
    with trio.fail_after(PATIENCE):
        await until(lambda: not len(it.state.wires))


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (b"", b""),
        (b"GET / HT", b""),
        (asking("/"), b"HTTP/1.1 200"),
        (asking("/api/events"), b"retry:"),
        (asking("/acp", *UPGRADE), b"HTTP/1.1 101"),
        (asking("/api/events/ws", *UPGRADE), b"HTTP/1.1 101"),
    ],
    ids=["nothing", "half a head", "a page", "a stream", "acp", "the feed"],
)
async def test_who_goes_away_leaves_nothing_behind(it: Gateway, request_: bytes, answer: bytes):
    stream = await trio.open_tcp_stream("127.0.0.1", it.port)
    with trio.fail_after(PATIENCE):
        await until(lambda: len(it.state.wires) == 1)
        await stream.send_all(request_)
        held = b""
        while answer not in held:
            held += await stream.receive_some(1 << 20)
    await stream.aclose()
    await all_given_back(it)


async def test_who_does_not_answer_a_closing_is_not_waited_for(it: Gateway):
    stream = await trio.open_tcp_stream("127.0.0.1", it.port)
    async with stream:
        binary = b"\x82\x81\0\0\0\0x"
        await stream.send_all(asking("/acp", *UPGRADE))
        held = b""
        with trio.fail_after(PATIENCE):
            while b"\r\n\r\n" not in held:
                held += await stream.receive_some(1000)
            await stream.send_all(binary)
            while b"\x88\x02" + struct.pack(">H", 1003) not in held:
                held += await stream.receive_some(1000)
        await all_given_back(it)


async def test_many_come_and_go(it: Gateway):
    for _ in range(60):
        stream = await trio.open_tcp_stream("127.0.0.1", it.port)
        await stream.send_all(asking("/acp", *UPGRADE))
        await stream.receive_some(1000)
        await stream.aclose()
    await all_given_back(it)


@pytest.mark.parametrize(
    "request_",
    [
        head("GET /acp HTTP/1.1", *UPGRADE, close=False) + b"\x81\x82\0\0\0\0{}",
        head("GET /acp HTTP/1.1", *UPGRADE, "Content-Length: 2", close=False) + b"{}",
        head("POST / HTTP/1.1", "Transfer-Encoding: chunked") + b"1;" + b"x" * 100_000,
        head("POST / HTTP/1.1", "Content-Length: 5") + b"he",
        head("GET / HTTP/1.1", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__", UPGRADE[1], close=False),
    ],
    ids=["a frame too early", "a body for a socket", "a chunk without end", "half a body", "another version"],
)
async def test_nobody_fills_the_log_without_the_token(it: Gateway, caplog, request_: bytes):
    caplog.set_level(logging.WARNING)
    for _ in range(10):
        stream = await trio.open_tcp_stream("127.0.0.1", it.port)
        await stream.send_all(request_)
        await stream.send_eof()
        await stream.aclose()
    await all_given_back(it)
    assert caplog.records == []
    assert status_of(await raw(it.port, head("GET / HTTP/1.1"))) == 200


async def test_a_crowd_is_told_once(home: Home, caplog):
    async with gateway(home, max_connections=1) as it:
        first = await trio.open_tcp_stream("127.0.0.1", it.port)
        with trio.fail_after(PATIENCE):
            await until(lambda: len(it.state.wires) == 1)
        for _ in range(5):
            assert await raw(it.port, head("GET / HTTP/1.1")) == b""
        await first.aclose()
    (record,) = caplog.records
    assert "there are 1" in record.getMessage()


async def test_a_failure_of_our_own_is_still_logged(it: Gateway, monkeypatch, caplog):
    async def fail(**wanted: object) -> object:
        raise RuntimeError("ours")

    monkeypatch.setattr(it.state.app.store(), "list_sessions", fail)
    answer = await raw(it.port, head("GET /api/sessions HTTP/1.1", BEARER))
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["status"] == 500
    assert any(record.exc_info and "ours" in str(record.exc_info[1]) for record in caplog.records)
    caplog.clear()
