"""Trouble that people had on the wire and with loading, each under the number of its report."""

import pytest

from tests.process.homes import Home, call, calls, says
from tests.process.models import answers, rows_of
from tests.support.fakes_llm import fake_server
from tests.support.wire_order import TRIM_META, Json
from tests.support.wire_talk import Talk, drip, greet, line_of, of_kind, refused, text_block, text_of


async def test_b081_b115_an_id_that_is_not_there_is_told_and_is_no_path(home: Home) -> None:
    """-32002 with the id as it was sent; nothing is created, nothing outside of the store is looked at."""
    (home.data / "..").resolve().joinpath("secret").write_text("x")
    ids = ("no-such-session", "../../../../etc/passwd", "../secret", "..\\..\\x", "a/b", "con", "a" * 5000)
    async with home.start() as agent:
        await greet(agent)
        answers = set()
        for session_id in (*ids, "x\u0000y", ""):
            load = {"sessionId": session_id, "cwd": str(home.work), "mcpServers": []}
            error = await refused(agent, "session/load", load, -32002)
            assert error.data == {"sessionId": session_id}
            resume = await refused(agent, "session/resume", load, -32002)
            assert (resume.data, resume.message) == (error.data, error.message)
            prompt = {"sessionId": session_id, "prompt": [text_block("hi")]}
            assert (await refused(agent, "session/prompt", prompt, -32002)).message == error.message
            answers.add(error.message.replace(repr(session_id[:80]), "ID"))
        assert len(answers) == 1
        assert await agent.call("session/list", {}) == {"sessions": []}
    assert {path.name.split(".db")[0] for path in home.data.iterdir()} == {"sessions"}


async def test_b085_a_session_that_was_never_used_can_be_loaded(home: Home) -> None:
    async with home.talk() as talk:
        pass
    async with home.resumed(talk) as replay:
        assert replay == []
        listed = await talk.agent.call("session/list", {})
        assert [entry["sessionId"] for entry in listed["sessions"]] == [talk.session_id]


async def test_b099_characters_that_are_cut_between_reads_arrive_whole(home: Home) -> None:
    """Byte by byte from the client; the same characters back from the model, in chunks of one byte."""
    text = "名前は é 🚀"
    async with fake_server(answers(text)) as server:
        server.answers[0] = type(server.answers[0])(
            tuple(bytes([byte]) for byte in b"".join(server.answers[0].chunks))
        )
        home.model_at(server.base_url)
        async with home.talk() as talk:
            params = {"sessionId": talk.session_id, "prompt": [text_block(text)]}
            frame: Json = {"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params}
            await drip(talk.agent, line_of(frame, b"\n", ascii_only=False), frame)
            assert (await talk.end_of(2)).text == text
        assert rows_of(server)[0]["content"] == text


async def test_b103_broken_lines_are_answered_by_the_rules_and_the_server_goes_on(home: Home) -> None:
    lines: list[tuple[bytes, list[tuple[object, int]]]] = [
        (b"this is not json\n", [(None, -32700)]),
        (b'{"jsonrpc":"2.0","id":5,"meth\n', [(None, -32700)]),
        (b"[]\n", [(None, -32600)]),
        (b'{"jsonrpc":"2.0","id":6}\n', [(6, -32600)]),
        (b'{"jsonrpc":"2.0","id":7,"method":"no/such"}\n', [(7, -32601)]),
        (b'{"jsonrpc":"2.0","method":"no/such/notification"}\n', []),
        (b"\n", []),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":8,"method":"no/such"}\n', [(None, -32700)]),
        (b"\xff\xfe\n", [(None, -32700)]),
    ]
    async with home.start() as agent:
        await greet(agent)
        before = len(agent.frames)
        for number in (6, 7, 8):
            await agent.send_bytes(b"", {"jsonrpc": "2.0", "id": number, "method": "no/such"}, valid=False)
        for line, _ in lines:
            await agent.send_bytes(line)
        await Talk.new(agent, home.work)
        told = [(frame["id"], frame["error"]["code"]) for frame in agent.frames[before:] if "error" in frame]
        assert told == [answer for _, wanted in lines for answer in wanted]


async def test_b106_a_client_that_declares_nothing_gets_only_standard_kinds(home: Home) -> None:
    """With the product's own kind switched off: then the trim is told in forms that every client shows."""
    home.configure(profile="max_history_messages = 1", acp='history_trimmed = "off"')
    async with home.talk(trim_exception=False) as talk:
        await talk.turn("one")
        turn = await talk.turn("two")
        assert of_kind(turn.updates, "usage_update")[0]["_meta"][TRIM_META]["droppedTurns"] == 1
        assert "2 messages" in turn.asides
        assert turn.text.endswith("you said two")


async def test_b107_folders_must_be_absolute_here(home: Home) -> None:
    """Relative ones and those of another system are refused in words; tools work in the session's folder."""
    (home.work / "here.txt").write_text("x")
    home.script(calls(call("list_dir", path=".")), says("ok"))
    async with home.start() as agent:
        await greet(agent)
        for folder in (".", "~/p", "work"):
            error = await refused(agent, "session/new", {"cwd": folder, "mcpServers": []}, -32602)
            assert "absolute" in error.message
        error = await refused(agent, "session/new", {"cwd": "E:\\Projects\\x", "mcpServers": []}, -32602)
        assert "cwd" in error.message
        error = await refused(agent, "session/new", {"cwd": str(home.work)}, -32602)
        assert "mcpServers" in error.message
        turn = await (await Talk.new(agent, home.work)).turn("look")
        assert "here.txt" in turn.calls[0]["content"][0]["content"]["text"]


@pytest.mark.parametrize("size", [100_000, 3_000_000])
async def test_a_long_line_of_the_transcript_comes_back_in_pieces(home: Home, size: int) -> None:
    """No line may be near the limits of known clients; the pieces are one message and join to the text."""
    home.script(says(["y" * size]))
    async with home.talk() as talk:
        assert (await talk.turn("x" * size)).text == "y" * size
        replay = await talk.load(talk.agent)
        assert (text_of(replay, "user_message_chunk"), text_of(replay)) == ("x" * size, "y" * size)
        assert len({update["messageId"] for update in replay}) == 2
