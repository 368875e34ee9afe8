"""The gateway as a process: its start and what it says, its token, and every way in which it ends."""

import os
import signal
import ssl
import stat
from pathlib import Path

import pytest
import trio

from tests.gateway.process import COMMAND, refused, running, token_file
from tests.gateway.rig import connected, head, raw, status_of
from tests.process.homes import Home, call, calls, says
from tests.process.terminals import terminal
from tests.support.wire import PATIENCE, never
from tests.support.wire_talk import Talk, greet, text_of

TLS = Path(__file__).parent.parent / "data" / "tls"
SOON = 4.0
"""Seconds: its own end takes two at most; a machine under load needs as long again to clear it away."""
SLOWLY = says(["word "] * 400, chunk_delay=0.05)


async def test_the_token_is_shown_once_and_kept(home: Home):
    async with running(home) as it:
        assert it.token in it.said[1]
        assert it.token not in it.said[0]
        mode = token_file(home).stat().st_mode
        assert stat.S_IMODE(mode) == 0o600
        async with connected(it.url, it.token) as agent:
            await greet(agent)
        first = it.token
        assert (await it.end())[0] == 0
    async with running(home) as it:
        assert it.token == first
        assert first not in "".join(it.said)


@pytest.mark.parametrize(
    ("address", "arguments"),
    [("0.0.0.0", ()), ("::", ()), ("192.0.2.1", ()), ("0.0.0.0", ("--tls-key", "x"))],
)
def test_another_address_needs_tls(home: Home, address: str, arguments: tuple[str, ...]):
    said = refused(home, "--host", address, *arguments)
    assert "--insecure-address" in said or "no certificate" in said
    assert not token_file(home).exists()


async def test_another_address_with_the_flag(home: Home):
    async with running(home, "--host", "0.0.0.0", "--insecure-address") as it:
        assert status_of(await raw(it.port, head("GET /api/sessions HTTP/1.1"))) == 401


async def test_tls(home: Home):
    arguments = ("--tls-cert", str(TLS / "cert.pem"), "--tls-key", str(TLS / "key.pem"))
    async with running(home, *arguments) as it:
        assert it.said[0].startswith("wholeturn gateway: https://")
        context = ssl.create_default_context(cafile=str(TLS / "cert.pem"))
        context.check_hostname = False
        stream = await trio.open_ssl_over_tcp_stream(
            "127.0.0.1", it.port, ssl_context=context, https_compatible=True
        )
        async with stream:
            await stream.send_all(head("GET /api/sessions HTTP/1.1", f"Authorization: Bearer {it.token}"))
            with trio.fail_after(PATIENCE):
                assert (await stream.receive_some(1000)).startswith(b"HTTP/1.1 200")
        assert await raw(it.port, head("GET / HTTP/1.1")) == b""
        assert (await it.end())[1] < SOON


@pytest.mark.parametrize(
    ("content", "mode", "says_"),
    [
        ("x" * 43, 0o644, "others can read it"),
        ("short", 0o600, "no token in it"),
        ("", 0o600, "no token in it"),
    ],
)
def test_a_token_that_others_know_is_not_used(home: Home, content: str, mode: int, says_: str):
    home.data.mkdir()
    token_file(home).write_text(content)
    token_file(home).chmod(mode)
    assert says_ in refused(home)


def test_a_token_behind_a_link_is_not_used(home: Home, tmp_path: Path):
    home.data.mkdir()
    (tmp_path / "elsewhere").write_text("x" * 43)
    token_file(home).symlink_to(tmp_path / "elsewhere")
    assert "cannot be read" in refused(home)


def test_a_certificate_that_is_none(home: Home):
    assert "the certificate or its key" in refused(home, "--tls-cert", str(home.log))


def test_nobody_is_asked_for_the_password_of_a_key(home: Home):
    files = ("--tls-cert", str(TLS / "cert.pem"), "--tls-key", str(TLS / "locked.pem"))
    with terminal() as shown:
        process = shown.start([*COMMAND, "--port", "0", *files], home.env, home.spawn)
        shown.wait_for(b"the certificate or its key cannot be used")
        assert process.wait(PATIENCE) == 1


async def test_a_port_that_is_taken(home: Home):
    async with running(home) as it:
        assert "cannot be listened on" in refused(home, "--port", str(it.port))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_it_ends_in_good_order(home: Home, number: signal.Signals):
    home.script(SLOWLY)
    async with running(home) as it:
        events = await trio.open_tcp_stream("127.0.0.1", it.port)
        await events.send_all(head("GET /api/events HTTP/1.1", f"Authorization: Bearer {it.token}"))
        assert b"200" in await events.receive_some(100)
        async with connected(it.url, it.token) as agent:
            await greet(agent)
            talk = await Talk.new(agent, home.work)
            asked = await talk.ask("talk on")
            await talk.see("agent_message_chunk")
            status, seconds = await it.end(number)
            assert (status, await agent.ended()) == (0, 1001)
            assert seconds < SOON
            assert (await talk.end_of(asked)).stop == "cancelled"
        await events.aclose()
    async with home.resumed(talk) as replay:
        assert 0 < len(text_of(replay)) < 400 * len("word ")


async def test_it_ends_although_a_client_does_not_read(home: Home):
    home.script(says(["x" * 100_000] * 120))
    async with running(home) as it, connected(it.url, it.token) as agent:
        await greet(agent)
        talk = await Talk.new(agent, home.work)
        events = await trio.open_tcp_stream("127.0.0.1", it.port)
        await events.send_all(head("GET /api/events HTTP/1.1", f"Authorization: Bearer {it.token}"))
        assert b"200" in await events.receive_some(100)
        agent.inbox.pause()
        await talk.ask("flood")
        silent = False
        while not silent:  # then all buffers are full
            with trio.move_on_after(2) as scope:
                await events.receive_some(1 << 20)
            silent = scope.cancelled_caught
        status, seconds = await it.end()
        await events.aclose()
        assert status == 0
        assert seconds < SOON


async def test_it_ends_although_a_question_is_open(home: Home):
    home.script(calls(call("write_file", path="a.txt", content="x")), says("done"))
    handlers = {"session/request_permission": never}
    async with running(home) as it, connected(it.url, it.token, handlers) as agent:
        await greet(agent)
        talk = await Talk.new(agent, home.work)
        asked = await talk.ask("write")
        await agent.until(lambda frame: frame.get("method") == "session/request_permission")
        status, seconds = await it.end()
        assert (status, (await talk.end_of(asked)).stop) == (0, "cancelled")
        assert seconds < SOON
    assert not (home.work / "a.txt").exists()


async def test_a_session_survives_the_gateway(home: Home):
    async with running(home) as it, connected(it.url, it.token) as agent:
        await greet(agent)
        talk = await Talk.new(agent, home.work)
        await talk.turn("before")
        home.script(SLOWLY)
        os.kill(it.process.pid, signal.SIGKILL)
        await it.process.wait()
    home.script(echo="{turn}: you said {last}")
    async with running(home) as it, connected(it.url, it.token) as agent:
        await greet(agent)
        replay = await talk.load(agent)
        assert text_of(replay) == "1: you said before"
        assert (await talk.turn("after")).text == "2: you said after"


async def test_a_turn_that_was_killed_is_told_and_goes_on(home: Home):
    home.script(SLOWLY)
    async with running(home) as it, connected(it.url, it.token) as agent:
        await greet(agent)
        talk = await Talk.new(agent, home.work)
        await talk.ask("talk on")
        seen = 0
        while seen < 20:
            await agent.until(lambda frame: "word " in str(frame), since=len(agent.frames))
            seen += 1
        os.kill(it.process.pid, signal.SIGKILL)
        await it.process.wait()
    home.script(says("again"))
    async with running(home) as it, connected(it.url, it.token) as agent:
        await greet(agent)
        assert text_of(await talk.load(agent)).startswith("word word ")
        assert (await talk.turn("go on")).stop == "end_turn"
