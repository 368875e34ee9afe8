"""Wrong requests: each gets its code and a sentence that names the field, and the connection goes on.

Lines that are no messages at all: `test_checklist_wire`.
"""

import pytest

from acp_server.wire.framing import MAX_LINE
from tests.process.homes import Home, says
from tests.support.wire_order import Json
from tests.support.wire_talk import Talk, greet, refused, text_block

TEXT = [text_block("x")]
LOAD: Json = {"sessionId": "nobody", "cwd": "/", "mcpServers": []}
BAD_PARAMS: list[tuple[str, object, str]] = [
    ("session/new", {"cwd": ".", "mcpServers": []}, "cwd"),
    ("session/new", {"cwd": "~/p", "mcpServers": []}, "cwd"),
    ("session/new", {"cwd": "", "mcpServers": []}, "cwd"),
    ("session/new", {"cwd": None, "mcpServers": []}, "cwd"),
    ("session/new", {"cwd": 5, "mcpServers": []}, "cwd"),
    ("session/new", {"cwd": "/a\u0000b", "mcpServers": []}, "cwd"),
    ("session/new", {"mcpServers": []}, "cwd"),
    ("session/new", {"cwd": "/", "mcpServers": "none"}, "mcpServers"),
    ("session/new", {"cwd": "/", "mcpServers": [{"name": "x"}]}, "mcpServers[0]"),
    ("session/new", {"cwd": "/", "mcpServers": [{"type": "smoke", "name": "x"}]}, "mcpServers[0]"),
    (
        "session/new",
        {"cwd": "/", "mcpServers": [], "additionalDirectories": ["not/absolute"]},
        "additionalDirectories",
    ),
    ("session/new", [], "object"),
    ("session/new", None, "cwd"),
    ("session/prompt", {"sessionId": "nobody"}, "prompt"),
    ("session/prompt", {"sessionId": 7, "prompt": TEXT}, "sessionId"),
    ("session/prompt", {"prompt": TEXT}, "sessionId"),
    ("session/prompt", {"sessionId": "nobody", "prompt": "words"}, "prompt"),
    ("session/prompt", {"sessionId": "nobody", "prompt": [{"type": "text"}]}, "prompt[0].text"),
    ("session/prompt", {"sessionId": "nobody", "prompt": [{"type": "smell"}]}, "prompt[0]"),
    ("session/prompt", {"sessionId": "nobody", "prompt": [*TEXT, {}]}, "prompt[1]"),
    (
        "session/prompt",
        {"sessionId": "nobody", "prompt": [{"type": "audio", "data": "AA==", "mimeType": "audio/wav"}]},
        "audio",
    ),
    ("session/load", {"sessionId": "nobody", "cwd": "."}, "cwd"),
    ("session/list", {"cursor": "no such page"}, "cursor"),
    ("session/list", {"cursor": 5}, "cursor"),
    ("session/list", {"cwd": "relative"}, "cwd"),
    ("session/close", {}, "sessionId"),
    ("authenticate", {"methodId": "magic"}, "methodId"),
    ("authenticate", {}, "methodId"),
]


async def test_wrong_params_are_32602_and_the_message_names_the_field(home: Home) -> None:
    async with home.start() as agent:
        await greet(agent)
        for method, params, field in BAD_PARAMS:
            error = await refused(agent, method, params, -32602)
            assert field in error.message, (method, params, error.message)
            assert len(error.message) < 300
        assert await agent.call("session/list", {}) == {"sessions": []}


async def test_an_unknown_session_is_32002_with_its_id(home: Home) -> None:
    """Clients fall back to a new session by this code; ids are data, never paths."""
    async with home.start() as agent:
        await greet(agent)
        for session_id in ("nobody", "", "../../../etc/passwd", "..\\x", "a/b", "x\u0000y", "a" * 5000):
            calls: list[tuple[str, Json]] = [
                ("session/load", {**LOAD, "sessionId": session_id}),
                ("session/prompt", {"sessionId": session_id, "prompt": TEXT}),
                ("session/close", {"sessionId": session_id}),
            ]
            for method, params in calls:
                error = await refused(agent, method, params, -32002)
                assert error.data == {"sessionId": session_id}
                assert len(error.message) < 200
        assert await agent.call("session/list", {}) == {"sessions": []}
    assert sorted(path.name for path in home.data.iterdir() if path.is_dir()) == []


async def test_anything_before_initialize_is_32600(home: Home) -> None:
    async with home.start() as agent:
        await refused(agent, "session/prompt", {"sessionId": "x", "prompt": TEXT}, -32600)
        await refused(agent, "session/new", {"cwd": str(home.work), "mcpServers": []}, -32600)
        await agent.notify("session/cancel", {"sessionId": "x"})
        await greet(agent)
        assert (await (await Talk.new(agent, home.work)).turn("hi")).stop == "end_turn"


async def test_a_load_from_another_folder_is_refused(home: Home) -> None:
    async with home.talk() as talk:
        params = {"sessionId": talk.session_id, "cwd": str(home.spawn), "mcpServers": []}
        error = await refused(talk.agent, "session/load", params, -32602)
        assert "cwd" in error.message


async def test_an_oversized_line_is_thrown_away_up_to_its_end(home: Home) -> None:
    async with home.start() as agent:
        await greet(agent)
        since = len(agent.frames)
        piece = b"x" * (1 << 20)
        for _ in range(MAX_LINE // len(piece) + 1):
            await agent.send_bytes(piece)
        told = await agent.until(lambda frame: "error" in frame, since=since)
        assert (told["error"]["code"], told["id"]) == (-32600, None)
        await agent.send_bytes(b"and more of the same line\n")
        assert await agent.call("session/list", {}) == {"sessions": []}
        assert len(agent.frames) == since + 2


async def test_an_id_that_is_still_open_is_refused_and_the_first_one_answered(home: Home) -> None:
    home.script(says(["half"], hang=True), echo="yes")
    prompt = {"jsonrpc": "2.0", "id": 7, "method": "session/prompt"}
    async with home.talk() as talk:
        prompt["params"] = {"sessionId": talk.session_id, "prompt": TEXT}
        await talk.agent.send(prompt)
        await talk.see("agent_message_chunk")
        await talk.agent.send_bytes(b'{"jsonrpc":"2.0","id":7,"method":"session/list"}\n')
        assert (await talk.agent.answer(7))["error"]["code"] == -32600
        await talk.agent.send_bytes(b"", prompt)  # one answer to this id is still due
        since = len(talk.agent.frames)
        await talk.cancel()
        ended = await talk.agent.until(lambda frame: "result" in frame, since=since)
        assert (ended["id"], ended["result"]) == (7, {"stopReason": "cancelled"})


async def test_an_empty_prompt_asks_nothing(home: Home) -> None:
    async with home.talk() as talk:
        turn = await talk.turn([])
        assert (turn.stop, turn.updates) == ("end_turn", [])
        assert (await talk.turn("hi")).text == "1: you said hi"


async def test_links_and_embedded_texts_reach_the_model_and_come_back_as_they_were(home: Home) -> None:
    blocks: list[Json] = [
        text_block("see"),
        {"type": "resource_link", "uri": "file:///tmp/a%20b.txt", "name": "a b.txt"},
        {"type": "resource", "resource": {"uri": "file:///x.py", "text": "print(1)", "mimeType": "text/x"}},
    ]
    home.script(echo="{last}")
    async with home.talk() as talk:
        turn = await talk.turn(blocks)
        assert all(piece in turn.text for piece in ("/tmp/a b.txt", "print(1)", "file:///x.py"))
        replay = await talk.load(talk.agent)
        assert [update["content"] for update in replay[:3]] == blocks


@pytest.mark.parametrize("settings", ["not TOML at all [", "[agents.default]\nprovder = 'x'\n"])
async def test_broken_settings_are_named_in_the_answer(home: Home, settings: str) -> None:
    """With the file, so that it can be mended; the next session reads it anew."""
    file = home.root / "config" / "config.toml"
    good = file.read_text()
    file.write_text(settings)
    async with home.start() as agent:
        await greet(agent)
        error = await refused(agent, "session/new", {"cwd": str(home.work), "mcpServers": []}, -32603)
        assert "config.toml" in error.message
        file.write_text(good)
        assert (await (await Talk.new(agent, home.work)).turn("hi")).stop == "end_turn"
