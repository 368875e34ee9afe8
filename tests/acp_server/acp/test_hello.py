"""The greeting: what is taken, that both ways answer alike, and that no byte read early is lost."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_server.acp.capabilities import BadInitialize, initialize_result, session_capabilities
from acp_server.start.start import fast_hello
from acp_server.wire.dispatch import Later, response, start
from acp_server.wire.messages import Request, encode_response, parse
from acp_server.wire.stdio import Hello
from tests.acp_server.wire.wire_peer import BASIC, SmallApp

HELLO_LINE = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'


BAD_VERSIONS: list[object] = ["1", "2025-01-01", True, False, 1.5, 1.0, None, -1, 65536, []]
BAD_PARAMS: list[object] = [None, [], "x", {}, *({"protocolVersion": bad} for bad in BAD_VERSIONS)]


@pytest.mark.parametrize("version", [0, 1, 2, 65535])
def test_any_version_is_answered_with_one(version: int) -> None:
    assert initialize_result({"protocolVersion": version})["protocolVersion"] == 1


@pytest.mark.parametrize("params", BAD_PARAMS)
def test_a_version_that_is_no_uint16_is_refused(params: object) -> None:
    with pytest.raises(BadInitialize):
        initialize_result(params)


@pytest.mark.parametrize(
    "capabilities", [None, 1, "x", [], {"fs": 1}, {"terminal": "yes"}, {"session": {"x": []}}]
)
def test_bad_capabilities_are_no_error(capabilities: object) -> None:
    params = {"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": capabilities}
    assert initialize_result(params) == initialize_result({"protocolVersion": 1})


def test_what_is_announced() -> None:
    result = initialize_result({"protocolVersion": 1})
    capabilities = result["agentCapabilities"]
    assert isinstance(capabilities, dict)
    assert capabilities["loadSession"] is True
    offered = ("list", "resume", "close", "delete", "additionalDirectories")
    assert capabilities["sessionCapabilities"] == {name: {} for name in offered}
    assert capabilities["mcpCapabilities"] == {"http": True, "sse": True}
    methods = result["authMethods"]
    assert isinstance(methods, list)
    # one without a type: driven by the agent, for every client
    assert any("type" not in method for method in methods)


@pytest.mark.parametrize("wish", [None, False, "yes", 1, {}, [True]])
def test_what_is_unstable_is_announced_only_to_those_who_ask(
    wish: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offered(params: dict[str, object]) -> set[str]:
        return set(session_capabilities(params))

    def asking(value: object) -> dict[str, object]:
        return {"clientCapabilities": {"_meta": {"wholeturn": {"unstable": value}}}}

    assert "fork" in offered(asking(True))
    assert "fork" not in offered(asking(wish))
    odd_ones: list[object] = [None, [], {"_meta": 1}, {"_meta": {"wholeturn": True}}]
    for odd in odd_ones:
        assert "fork" not in offered({"clientCapabilities": odd})
    monkeypatch.setenv("WHOLETURN_UNSTABLE", "1")
    assert "fork" in offered(asking(wish))
    monkeypatch.setenv("WHOLETURN_UNSTABLE", "0")
    assert "fork" not in offered({})


@contextmanager
def pipes(sent: bytes, *, close: bool = False) -> Iterator[tuple[int, int, int]]:
    """(fd to read from, fd to write to, fd with what was written)."""
    fd_in, feed = os.pipe()
    out, fd_out = os.pipe()
    os.write(feed, sent)
    if close:
        os.close(feed)
    try:
        yield fd_in, fd_out, out
    finally:
        for fd in (fd_in, fd_out, out, *(() if close else (feed,))):
            os.close(fd)


def greet(sent: bytes, *, close: bool = False) -> tuple[Hello, bytes]:
    with pipes(sent, close=close) as (fd_in, fd_out, out):
        hello = fast_hello(fd_in, fd_out, patience=0.05)
        os.write(fd_out, b"END")
        return hello, os.read(out, 65536).removesuffix(b"END")


def by_the_table(line: bytes) -> bytes:
    """What the full server answers."""
    request = parse(line.strip())
    assert isinstance(request, Request)
    outcome = start(BASIC, SmallApp(), request.method, request.params)
    assert not isinstance(outcome, Later)
    return encode_response(response(request.id, outcome))


@settings(max_examples=100, deadline=None)
@given(
    request_id=st.text() | st.integers(-(2**63), 2**64),
    version=st.integers(0, 65535),
    name=st.text(),
    ascii_only=st.booleans(),
)
def test_both_ways_answer_with_the_same_bytes(
    request_id: object, version: int, name: str, ascii_only: bool
) -> None:
    params = {"protocolVersion": version, "clientInfo": {"name": name, "version": "1"}}
    message = {"jsonrpc": "2.0", "id": request_id, "method": "initialize", "params": params}
    line = json.dumps(message, ensure_ascii=ascii_only).encode() + b"\n"
    hello, written = greet(line + b"rest")
    if hello.params is None:
        assert (hello.rest, written) == (line + b"rest", b"")
    else:
        assert (hello.params, hello.rest, written) == (params, b"rest", by_the_table(line))


def test_a_plain_greeting_is_answered_at_once() -> None:
    hello, written = greet(HELLO_LINE + b'{"next":')
    assert (hello.params, hello.rest, hello.eof) == ({"protocolVersion": 1}, b'{"next":', False)
    assert written == by_the_table(HELLO_LINE)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\n" + HELLO_LINE,
        HELLO_LINE[:-1],
        HELLO_LINE[:20],
        b"garbage\n" + HELLO_LINE,
        b"[" + HELLO_LINE[:-1] + b"]\n",
        HELLO_LINE.replace(b'"2.0"', b'"1.0"'),
        HELLO_LINE.replace(b'"id":0,', b""),
        HELLO_LINE.replace(b'"id":0', b'"id":null'),
        HELLO_LINE.replace(b'"id":0', b'"id":true'),
        HELLO_LINE.replace(b'"id":0', b'"id":1.0'),
        HELLO_LINE.replace(b'"id":0', b'"id":' + str(2**70).encode()),
        HELLO_LINE.replace(b'"id":0', b'"id":' + b"9" * 5000),
        HELLO_LINE.replace(b'"id":0', b'"id":"\\ud800"'),
        HELLO_LINE.replace(b'"id":0', b'"id":"\xff"'),
        HELLO_LINE.replace(b'"id":0', b'"id":NaN'),
        HELLO_LINE.replace(b":1}", b":NaN}"),
        HELLO_LINE.replace(b":1}", b':1,"_meta":{"x":NaN}}'),
        HELLO_LINE.replace(b":1}", b':"1"}'),
        HELLO_LINE.replace(b"initialize", b"session/new"),
        HELLO_LINE.replace(b'{"protocolVersion":1}', b"[1]"),
        HELLO_LINE.replace(b'{"protocolVersion":1}', b"[" * 60_000 + b"]" * 60_000)[:60_000],
    ],
)
@pytest.mark.parametrize("close", [False, True])
def test_all_else_is_handed_over_unread(sent: bytes, close: bool) -> None:
    hello, written = greet(sent, close=close)
    assert (hello.params, hello.rest, written) == (None, sent, b"")
    # The end of input shows only to a reader that got no whole line before it.
    assert hello.eof == (close and b"\n" not in sent)


def test_a_line_that_comes_in_pieces() -> None:
    fd_in, feed = os.pipe()
    out, fd_out = os.pipe()

    def trickle() -> None:
        for byte in HELLO_LINE:
            os.write(feed, bytes([byte]))

    thread = threading.Thread(target=trickle)
    thread.start()
    hello = fast_hello(fd_in, fd_out, patience=30)
    thread.join(30)
    assert hello.params == {"protocolVersion": 1}
    assert os.read(out, 65536) == by_the_table(HELLO_LINE)
    for fd in (fd_in, feed, out, fd_out):
        os.close(fd)


def test_a_client_that_has_gone_ends_it_quietly() -> None:
    with pipes(HELLO_LINE) as (fd_in, _, _):
        gone, fd_out = os.pipe()
        os.close(gone)
        with pytest.raises(SystemExit) as exit_info:
            fast_hello(fd_in, fd_out)
        os.close(fd_out)
    assert exit_info.value.code == 0


def test_a_descriptor_in_non_blocking_mode() -> None:
    with pipes(b"") as (fd_in, fd_out, _):
        os.set_blocking(fd_in, False)
        assert fast_hello(fd_in, fd_out, patience=0.01).rest == b""


def test_it_works_on_files(tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(HELLO_LINE)
    target.touch()
    fd_in, fd_out = os.open(source, os.O_RDONLY), os.open(target, os.O_WRONLY)
    assert fast_hello(fd_in, fd_out).params == {"protocolVersion": 1}
    os.close(fd_in)
    os.close(fd_out)
    assert target.read_bytes() == by_the_table(HELLO_LINE)


def test_its_imports_are_light() -> None:
    code = "import sys, acp_server.acp.capabilities, acp_server.wire.stdio; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, '.'); {code}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    heavy = {
        "trio",
        "orjson",
        "pydantic",
        "logging",
        "dataclasses",
        "typing_extensions",
        "inspect",
        "asyncio",
    }
    assert heavy & set(done.stdout.split()) == set()
