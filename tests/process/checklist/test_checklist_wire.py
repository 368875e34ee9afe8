"""The client's checklist, part 1: what each line on the wire may be. One test a row, a real process each."""

import json
import sys

import pytest

from tests.process.homes import Home, call, calls, says
from tests.support.wire_order import Json
from tests.support.wire_talk import READS_FILES, Talk, drip, greet, line_of, of_kind, refused

HELLO: Json = {"protocolVersion": 1, "clientCapabilities": {}}
NOISY_RIPGREP = """\
#!/bin/sh
echo '{"jsonrpc":"2.0","id":1,"result":{}} from the child' >&2
echo 'noise for whoever reads it'
exit 1
"""
PRINTS = """\
import sys, os
import runtime.providers.scripted.provider as scripted
create = scripted.create
def noisy(settings):
    print("a stray print")
    os.write(1, b"a stray write\\n")
    os.system("echo a stray child")
    return create(settings)
scripted.create = noisy
from acp_server.__main__ import main
sys.argv[1:] = []
print("early: before the wire is taken", file=sys.stderr)
sys.exit(main())
"""


async def test_first_line_is_the_initialize_reply_and_nothing_else_is_ever_on_stdout(home: Home) -> None:
    """With a print, a write to descriptor 1 and children that shout: the client parses every line."""
    tools = home.root / "bin"
    tools.mkdir()
    (tools / "rg").write_text(NOISY_RIPGREP)
    (tools / "rg").chmod(0o755)
    home.extra_env["PATH"] = f"{tools}:{home.env['PATH']}"
    home.script(calls(call("search_text", pattern="x")), says("searched"))
    async with home.start(command=(sys.executable, "-c", PRINTS)) as agent:
        await greet(agent)
        assert agent.frames[0]["result"]["protocolVersion"] == 1
        turn = await (await Talk.new(agent, home.work)).turn("search")
        assert (turn.text, turn.calls[0]["status"]) == ("searched", "failed")
    assert {"a stray print", "a stray write", "a stray child"} <= set(home.log.read_text().splitlines())


@pytest.mark.parametrize("first", [1, 2])
async def test_protocol_version_is_negotiated(home: Home, first: int) -> None:
    """Known or not: the answer is the one that is spoken here, on the first line and later."""
    async with home.start() as agent:
        for asked in (first, 1, 2, 0, 65535):
            result = await agent.call("initialize", {**HELLO, "protocolVersion": asked})
            assert result["protocolVersion"] == 1


async def test_protocol_version_of_another_type_is_refused(home: Home) -> None:
    async with home.start() as agent:
        for wrong in ("1", "2025-01-01", True, 1.5, -1, 65536, None):
            await refused(agent, "initialize", {**HELLO, "protocolVersion": wrong}, -32602)
        await refused(agent, "initialize", {"clientCapabilities": {}}, -32602)
        await greet(agent)


@pytest.mark.parametrize("first", [True, False], ids=["on-the-first-line", "later"])
async def test_ids_are_echoed_exactly(home: Home, first: bool) -> None:
    async with home.start() as agent:
        if not first:
            await greet(agent)
        for request_id in (0, -5, 2**53 + 1, -(2**63), "uuid-0a1b", "", "1", 1, None):
            method, since = "initialize" if first else "session/list", len(agent.frames)
            await agent.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": {**HELLO}})
            frame = await agent.until(lambda _: True, since=since)
            assert "result" in frame, frame
            assert (frame["id"], type(frame["id"])) == (request_id, type(request_id))


async def test_garbage_lines_are_answered_and_the_connection_goes_on(home: Home) -> None:
    rows: list[tuple[bytes, int, object]] = [
        (b"this is not JSON", -32700, None),
        (b'{"jsonrpc":"2.0","id":5,"meth', -32700, None),
        (b'{"jsonrpc":"2.0","id":5,"method":"session/list","params":NaN}', -32700, None),
        (b"\xff\xfe", -32700, None),
        (b"[" * 100_000, -32700, None),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"session/list"}]', -32600, None),
        (b"1", -32600, None),
        (b'"text"', -32600, None),
        (b"null", -32600, None),
        (b"{}", -32600, None),
        (b'{"jsonrpc":"2.0"}', -32600, None),
        (b'{"id":true,"jsonrpc":"2.0","method":"session/list"}', -32600, None),
        (b'{"id":[1],"jsonrpc":"2.0","method":"session/list"}', -32600, None),
        (b'{"id":6,"method":"session/list"}', -32600, 6),
        (b'{"id":7,"jsonrpc":"1.0","method":"session/list"}', -32600, 7),
        (b'{"id":8,"jsonrpc":"2.0","method":5}', -32600, 8),
        (b'{"id":9,"jsonrpc":"2.0","method":"session/list","params":"x"}', -32600, 9),
        (b'{"id":10,"jsonrpc":"2.0"}', -32600, 10),
    ]
    async with home.start() as agent:
        await greet(agent)
        for line, code, request_id in rows:
            since = len(agent.frames)
            says = [] if request_id is None else [{"jsonrpc": "2.0", "id": request_id, "method": "?"}]
            await agent.send_bytes(line + b"\n", *says, valid=False)
            frame = await agent.until(lambda _: True, since=since)
            assert (frame["error"]["code"], frame["id"]) == (code, request_id), line
        assert await agent.call("session/list", {}) == {"sessions": []}


async def test_unknown_requests_are_32601_and_unknown_notifications_are_silent(home: Home) -> None:
    async with home.start() as agent:
        await greet(agent)
        before = len(agent.frames)
        for method in ("foo", "_foo", "$/foo", "session/fork", "session/set_model", "", "initialized"):
            await refused(agent, method, {}, -32601)
        assert len(agent.frames) == before + 7
        for method in ("foo", "_foo", "$/foo", "session/resume", "session/update"):
            await agent.send({"jsonrpc": "2.0", "method": method, "params": {"x": 1}}, valid=False)
        await agent.send({"jsonrpc": "2.0", "method": "session/cancel", "params": {"no": "id"}}, valid=False)
        await agent.call("session/list", {})
        assert len(agent.frames) == before + 8


async def test_replies_to_nothing_are_ignored(home: Home) -> None:
    async with home.start() as agent:
        await greet(agent)
        before = len(agent.frames)
        error = {"code": -32602, "message": "I did not like your notification"}
        for reply in (
            {"id": None, "error": error},
            {"id": 4711, "result": {}},
            {"id": "unknown", "error": error},
            {"id": 4711, "result": {}, "error": error},
            {"error": error},
        ):
            await agent.send({"jsonrpc": "2.0", **reply}, valid=False)
        await agent.call("session/list", {})
        assert len(agent.frames) == before + 1


async def test_a_prompt_line_of_40_megabytes_is_taken(home: Home) -> None:
    """Too large for the budget it may be, but not for the wire; the next prompt leaves it out and says so."""
    home.configure(profile="max_context_tokens = 2000")
    home.script(echo="still here")
    async with home.talk() as talk:
        assert (await talk.turn("word " * 8_000_000)).text == "still here"
        turn = await talk.turn("and now?")
        assert turn.text == "still here"
        assert of_kind(turn.updates, "history_trimmed")[0]["droppedMessages"] == 2


async def test_bytes_one_by_one_with_crlf_and_blank_lines(home: Home) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {**HELLO}}
    listed = {"jsonrpc": "2.0", "id": 2, "method": "session/list", "params": {}}
    async with home.start() as agent:
        await drip(agent, b"\r\n\n  \n" + line_of(hello, b"\r\n"), hello)
        assert (await agent.result(1))["protocolVersion"] == 1
        await drip(agent, line_of(listed, b"\r\n") + b"\r\n", listed)
        assert await agent.result(2) == {"sessions": []}


async def test_a_last_line_without_its_end_still_counts(home: Home) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {**HELLO}}
    async with home.start() as agent:
        await agent.send_bytes(line_of(hello, b""), hello)
        assert await agent.close() == 0
        assert [frame["id"] for frame in agent.frames] == [1]


async def test_b101_line_separators_within_text_do_not_end_a_line(home: Home) -> None:
    """On the wire, in the store, and when read back."""
    text = "a\u2028b\u2029c\u0085d\x0be\x1cf"
    home.script(echo="{last}")
    async with home.talk() as talk:
        assert (await talk.turn(text)).text == text
    async with home.resumed(talk) as replay:
        assert [update["content"]["text"] for update in replay] == [text, text]


async def test_lone_surrogates_become_replacement_characters(home: Home) -> None:
    """From a prompt, from the model's script, from a client's file, and from a file name that is no UTF-8."""
    (home.work / "a.txt").write_text("on disk")
    (home.work / "bad\udcff.txt").write_text("x")
    home.script(calls(call("read_file", path="a.txt"), call("list_dir", path=".")), says("ok"), echo="{last}")

    async def buffer(params: Json) -> object:
        return {"content": "in the \ud800 editor"}

    async with home.talk(READS_FILES, handlers={"fs/read_text_file": buffer}) as talk:
        turn = await talk.turn("look")
        read, listed = (shown["content"][0]["content"]["text"] for shown in turn.calls)
        assert read == "1|in the \ufffd editor"
        assert "bad" in listed
        line = (
            b'{"jsonrpc":"2.0","id":9,"method":"session/prompt","params":{"sessionId":"%b","prompt":[%b]}}\n'
        )
        block = b'{"type":"text","text":"half \\ud800 a pair"}'
        says_9 = {"sessionId": talk.session_id, "prompt": []}
        await talk.agent.send_bytes(
            line % (talk.session_id.encode(), block),
            {"jsonrpc": "2.0", "id": 9, "method": "session/prompt", "params": says_9},
        )
        assert (await talk.end_of(9, since=len(talk.agent.frames))).stop == "end_turn"
        assert "half \ufffd a pair" in json.dumps(talk.updates(), ensure_ascii=False)
