"""The gateway's parts alone: limits, addresses, the running turn, sockets that are not read, the token."""

import stat
import sys
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from acp_server.cli import gateway
from acp_server.cli.main import run
from acp_server.gateway import sockets
from acp_server.gateway.guard import MOST_ADDRESSES, Limits, Place, is_loopback, place_of
from acp_server.gateway.sessions.running_turn import MOST_MESSAGES, Running
from acp_server.gateway.sockets import Wires
from acp_server.gateway.token import is_same, read_or_make
from runtime.values.errors import ConfigError
from runtime.values.events import (
    AgentText,
    AgentThought,
    Event,
    ToolCallChanged,
    ToolCallStarted,
    UsageChanged,
    UserMessage,
)
from tests.test_architecture import loaded


def test_an_address_may_do_so_much_at_once_and_then_so_much_in_time():
    limits = Limits(2)
    assert [limits.take("a", 0) for _ in range(20)] == [0] * 20
    assert limits.take("a", 0) == 0.5
    assert limits.take("b", 0) == 0
    assert limits.take("a", 0.5) == 0
    assert limits.take("a", 0.5) > 0
    assert [limits.take("a", 1000) for _ in range(20)] == [0] * 20
    assert limits.take("a", 1000) > 0


def test_the_addresses_that_are_remembered_are_bounded():
    limits = Limits(1)
    for number in range(MOST_ADDRESSES + 10):
        limits.take(str(number), 0)
    assert len(limits._buckets) == MOST_ADDRESSES


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("localhost", Place("localhost")),
        ("LocalHost.:8017", Place("localhost", 8017)),
        ("127.0.0.1:1", Place("127.0.0.1", 1)),
        ("[::1]", Place("::1")),
        ("[::1]:80", Place("::1", 80)),
        *[
            (bad, None)
            for bad in ("", ":80", "a:", "a:b", "a:1:2", "::1", "[::1", "[::1]x", "a/b", "a@b", "ä", "a b")
        ],
    ],
)
def test_hosts(text: str, place: Place | None):
    assert place_of(text) == place


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("127.9.9.9", True), ("0.0.0.0", False),
     ("::", False), ("192.0.2.7", False)],
)  # fmt: skip
def test_loopback(host: str, expected: bool):
    assert is_loopback(host) is expected


def test_a_host_that_there_is_not():
    with pytest.raises(ConfigError, match="no address"):
        is_loopback("no such host")


PIECES = st.lists(
    st.builds(
        lambda kind, key, text: kind(f"{kind.__name__}{key}", text),
        st.sampled_from([AgentText, AgentThought]),
        st.integers(0, 3),
        st.text(max_size=3),
    )
)


@given(PIECES)
def test_a_turn_so_far_has_all_text_of_each_message(pieces: list[AgentText | AgentThought]):
    running = Running()
    for piece in pieces:
        running.note(piece)
    shown: dict[str, str] = {}
    for event in running.events():
        assert isinstance(event, AgentText | AgentThought)
        assert event.message_id not in shown
        shown[event.message_id] = event.text
    wanted: dict[str, str] = {}
    for piece in pieces:
        wanted[piece.message_id] = wanted.get(piece.message_id, "") + piece.text
    assert shown == wanted


def test_a_call_is_kept_in_its_latest_state():
    running, started = Running(), ToolCallStarted("c", "read_file", "Read", "read", {})
    changes = [ToolCallChanged("c", "in_progress", text) for text in "abc"]
    events: list[Event] = [UserMessage("u", {}), started, *changes, UsageChanged(1, 2)]
    for event in events:
        running.note(event)
    assert running.events() == [UserMessage("u", {}), started, changes[-1]]
    running.note(ToolCallChanged("c", "completed"))
    assert running.events()[2:] == [changes[-1], ToolCallChanged("c", "completed")]


def test_a_long_turn_is_kept_by_its_newest_messages():
    running = Running()
    for number in range(MOST_MESSAGES + 5):
        running.note(ToolCallStarted(str(number), "x", "x", "read", {}))
    running.note(ToolCallChanged("0", "completed", "too old"))
    kept = [event.call_id for event in running.events() if isinstance(event, ToolCallStarted)]
    assert kept == [str(number) for number in range(5, MOST_MESSAGES + 5)]
    assert len(running.events()) == MOST_MESSAGES


async def test_who_takes_nothing_is_cut(autojump_clock: MockClock):
    listener, *_ = await trio.open_tcp_listeners(0, host="127.0.0.1")
    client = await trio.open_tcp_stream(*listener.socket.getsockname()[:2])
    everyone = Wires()
    wire = everyone.open(await listener.accept(), None)
    with pytest.raises(trio.BrokenResourceError):
        await wire.send_all(b"x" * (64 << 20))
    assert trio.current_time() >= sockets.SEND_SECONDS
    assert len(everyone) == 0
    await client.aclose()
    await listener.aclose()


async def test_who_does_not_answer_a_closing_is_not_waited_for(autojump_clock: MockClock):
    listener, *_ = await trio.open_tcp_listeners(0, host="127.0.0.1")
    client = await trio.open_tcp_stream(*listener.socket.getsockname()[:2])
    wire = Wires().open(await listener.accept(), None)
    await wire.send_all(b"\x88\x02\x03\xf1")
    assert await wire.receive_some() == b""
    await wire.aclose()
    await client.aclose()
    await listener.aclose()


def test_the_token_is_made_once(tmp_path: Path):
    path = tmp_path / "new" / "gateway.token"
    token, made = read_or_make(path)
    assert made
    assert read_or_make(path) == (token, False)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == ["gateway.token"]
    assert is_same(token, token)
    assert not is_same(token + "x", token)
    assert not is_same("\udcff\xe9", token)


def test_a_folder_that_nobody_may_write_to(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError):
        read_or_make(tmp_path / "file" / "gateway.token")


def test_the_server_over_stdio_knows_nothing_of_it():
    assert (
        loaded(
            "acp_server.start.serve, acp_server.app.open_sessions",
            "hypercorn",
            "starlette",
            "acp_server.gateway",
        )
        == []
    )


def test_without_the_extra_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(gateway, "find_spec", lambda name: None)
    assert run(["gateway"]) == 1
    assert capsys.readouterr().err.endswith(f"{sys.executable} -m pip install 'wholeturn[gateway]'\n")


def test_a_token_file_that_cannot_even_be_looked_for(tmp_path: Path):
    with pytest.raises(ConfigError, match="the token cannot be read: File name too long"):
        read_or_make(tmp_path / ("x" * 300) / "gateway.token")
