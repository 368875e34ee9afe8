"""ACP v2 before and beside the turns: who gets it, sessions found again, login, what is refused and how."""

import pytest

from tests.process.homes import Home, call, calls, says
from tests.support.wire import Refused
from tests.support.wire_order import Json
from tests.support.wire_talk import Talk as FirstTalk
from tests.support.wire_talk import greet as first_greet
from tests.support.wire_talk import kinds, refused, text_block
from tests.support.wire_talk_v2 import INFO, Talk, greet


@pytest.fixture
def home(home: Home) -> Home:
    home.configure(acp="v2 = true")
    return home


# ---------------------------------------------------------------- initialize


async def test_what_is_offered(home: Home) -> None:
    async with home.start(edition="schema-v2") as agent:
        result = await greet(agent, {"auth": {"terminal": {}}})
    session = result["capabilities"]["session"]
    assert session == {
        "prompt": {"image": {}, "embeddedContext": {}},
        "mcp": {"stdio": {}, "http": {}},
        "delete": {},
        "additionalDirectories": {},
    }
    assert [(method["type"], method["methodId"]) for method in result["authMethods"]] == [
        ("agent", "config"),
        ("terminal", "setup"),
    ]
    assert result["info"]["name"] == "wholeturn"


@pytest.mark.parametrize(("asked", "spoken"), [(2, 2), (3, 2), (65535, 2)])
async def test_a_later_version_is_answered_with_the_latest(home: Home, asked: int, spoken: int) -> None:
    async with home.start(edition="schema-v2") as agent:
        result = await greet(agent, version=asked)
        assert (result["protocolVersion"], "authMethods" in result) == (spoken, True)


@pytest.mark.parametrize("off", ["", "v2 = false", "v2 = 'mended'"])
async def test_without_the_setting_there_is_one_version(home: Home, off: str) -> None:
    """Also with settings that cannot be read; what is wrong with them is told when a session is opened."""
    home.configure(acp=off or "\n")
    async with home.start() as agent:
        params = {"protocolVersion": 2, "info": INFO, "capabilities": {}}
        result = await agent.call("initialize", params, valid=False)
        assert (result["protocolVersion"], "agentCapabilities" in result) == (1, True)


@pytest.mark.parametrize("how", ["file", "variable", "flag"])
async def test_the_setting_is_one_like_others(home: Home, how: str) -> None:
    if how != "file":
        home.configure(acp="\n")
    home.extra_env |= {"WHOLETURN_ACP__V2": "true"} if how == "variable" else {}
    async with home.start(*(("--set", "acp.v2=true") if how == "flag" else ()), edition="schema-v2") as agent:
        assert (await greet(agent))["protocolVersion"] == 2


async def test_a_client_of_the_first_version_sees_no_difference(home: Home) -> None:
    home.script(calls(call("read_file", path="a.txt")), says("done"))
    (home.work / "a.txt").write_text("x")
    async with home.start() as agent:
        assert (await first_greet(agent))["protocolVersion"] == 1
        talk = await FirstTalk.new(agent, home.work)
        turn = await talk.turn("go")
        assert (turn.stop, turn.text) == ("end_turn", "done")
        assert "state_update" not in kinds(talk.updates())
        await refused(agent, "auth/login", {"methodId": "config"}, -32601)


@pytest.mark.parametrize("wrong", [{}, {"info": {"name": "x"}}, {"info": None}, {"clientInfo": INFO}])
async def test_who_does_not_say_its_name_is_refused_and_may_try_again(home: Home, wrong: Json) -> None:
    async with home.start(edition="schema-v2") as agent:
        await refused(agent, "initialize", {"protocolVersion": 2, **wrong}, -32602)
        await refused(agent, "session/new", {"cwd": str(home.work)}, -32600)
        await greet(agent)
        await Talk.new(agent, home.work)
        await refused(agent, "initialize", {"protocolVersion": 2, "info": INFO}, -32600)


# ---------------------------------------------------------------- sessions


async def test_a_session_is_resumed_with_what_was_said_or_without(home: Home) -> None:
    home.script(
        calls(call("read_file", path="a.txt")), says("It says x.", thought="Hm."), echo="{turn}: {last}"
    )
    (home.work / "a.txt").write_text("x")
    async with home.start(edition="schema-v2") as agent:
        await greet(agent)
        talk = await Talk.new(agent, home.work)
        said = await talk.turn([text_block("look"), text_block("closely")])
    async with home.start(edition="schema-v2") as agent:
        await greet(agent)
        assert await talk.resume(agent) == [{"sessionUpdate": "state_update", "state": "idle"}]
    async with home.start(edition="schema-v2") as agent:
        await greet(agent)
        first = await talk.resume(agent, replayFrom={"type": "start"})
        assert kinds(first) == [
            *("user_message", "user_message_chunk", "tool_call_update"),
            *("agent_thought", "agent_message", "state_update"),
        ]
        assert first[0]["messageId"] == said.message_id
        assert first[2]["status"] == "completed"
        assert first[4]["content"] == [text_block("It says x.")]
        assert await talk.resume(agent, replayFrom={"type": "start"}) == first
        assert (await talk.turn("more")).stop == "end_turn"


async def test_a_session_is_resumed_while_its_turn_runs(home: Home) -> None:
    home.script(says("first", hang=True))
    async with home.start(edition="schema-v2") as agent:
        await greet(agent)
        talk = await Talk.new(agent, home.work)
        since = len(agent.frames)
        asked = await talk.ask("one")
        await agent.result(asked)
        assert (await talk.resume(agent))[-1] == {"sessionUpdate": "state_update", "state": "running"}
        await talk.cancel()
        assert (await talk.end_of(asked, since)).stop == "cancelled"


async def test_a_resume_is_refused_for_what_it_cannot_give(home: Home) -> None:
    async with home.start(edition="schema-v2") as agent:
        await greet(agent)
        talk = await Talk.new(agent, home.work)
        known = {"sessionId": talk.session_id, "cwd": str(home.work)}
        for cursor in ({"type": "message", "messageId": "m"}, {"type": "_ours"}, {}, "start", 1):
            await refused(agent, "session/resume", {**known, "replayFrom": cursor}, -32602)
        await refused(agent, "session/resume", {**known, "cwd": str(home.spawn)}, -32602)
        error = await refused(agent, "session/resume", {**known, "sessionId": "sess_nobody"}, -32002)
        assert error.data == {"sessionId": "sess_nobody"}


async def test_sessions_are_listed_closed_and_deleted(home: Home) -> None:
    async with home.start(edition="schema-v2") as agent:
        await greet(agent)
        talk, other = await Talk.new(agent, home.work), await Talk.new(agent, home.spawn)
        await talk.turn("hello there")
        listed = (await agent.call("session/list", {"cwd": str(home.work)}))["sessions"]
        assert [(one["sessionId"], one["title"]) for one in listed] == [(talk.session_id, "hello there")]
        for session_id in (talk.session_id, talk.session_id, "sess_nobody"):
            assert await agent.call("session/close", {"sessionId": session_id}) == {}
        await refused(
            agent, "session/prompt", {"sessionId": talk.session_id, "prompt": [text_block("x")]}, -32002
        )
        await talk.resume(agent)
        assert (await talk.turn("still there?")).stop == "end_turn"
        for session_id in (talk.session_id, talk.session_id, other.session_id):
            assert await agent.call("session/delete", {"sessionId": session_id}) == {}
        assert (await agent.call("session/list", {}))["sessions"] == []


@pytest.mark.parametrize(
    ("server", "code"),
    [
        ({"type": "stdio", "name": "s", "command": "/bin/false"}, 0),
        ({"type": "http", "name": "s", "url": "http://127.0.0.1:9/mcp"}, 0),
        ({"name": "s", "command": "/bin/false", "args": [], "env": []}, -32602),
        ({"type": "sse", "name": "s", "url": "http://127.0.0.1:9/", "headers": []}, -32602),
        ({"type": "_ours", "name": "s"}, -32602),
        ({"type": "stdio", "name": "s"}, -32602),
        ({"type": ["stdio"], "name": "s"}, -32602),
        ("s", -32602),
    ],
)
async def test_servers_name_their_kind(home: Home, server: object, code: int) -> None:
    async with home.start(edition="schema-v2") as agent:
        await greet(agent)
        params = {"cwd": str(home.work), "mcpServers": [server]}
        if code:
            await refused(agent, "session/new", params, code)
        else:
            assert (await agent.call("session/new", params))["sessionId"]


async def test_what_is_wrong_or_gone_is_refused(home: Home) -> None:
    async with home.start(edition="schema-v2") as agent:
        await greet(agent)
        talk = await Talk.new(agent, home.work)
        known = {"sessionId": talk.session_id}
        wrong: list[tuple[str, Json, int]] = [
            ("session/new", {"cwd": "work"}, -32602),
            ("session/new", {"cwd": str(home.work), "mcpServers": 1}, -32602),
            ("session/prompt", {**known, "prompt": []}, -32602),
            (
                "session/prompt",
                {**known, "prompt": [{"type": "audio", "data": "", "mimeType": "x/y"}]},
                -32602,
            ),
            ("session/prompt", {**known, "prompt": [{"type": "_ours"}]}, -32602),
            ("session/set_config_option", {**known, "configId": "mode", "value": "plan"}, -32602),
            ("session/set_config_option", {**known, "configId": "x", "type": "id", "value": "y"}, -32602),
            (
                "session/set_config_option",
                {**known, "configId": "mode", "type": "boolean", "value": True},
                -32602,
            ),
            ("session/set_mode", {**known, "modeId": "plan"}, -32601),
            ("session/load", {**known, "cwd": str(home.work), "mcpServers": []}, -32601),
            ("session/fork", {**known, "cwd": str(home.work)}, -32601),
            ("authenticate", {"methodId": "config"}, -32601),
            ("tool_call/cancel", {**known, "toolCallId": "c"}, -32601),
            ("terminal/cancel", {**known, "terminalId": "t"}, -32601),
        ]
        for method, params, code in wrong:
            await refused(agent, method, params, code)
        assert (await talk.turn("hi")).stop == "end_turn"


# ---------------------------------------------------------------- login


async def test_after_a_logout_nothing_is_done_until_the_login(home: Home) -> None:
    home.script(says("first", hang=True), echo="{last}")
    async with home.start(edition="schema-v2") as agent:
        await greet(agent)
        talk = await Talk.new(agent, home.work)
        since = len(agent.frames)
        asked = await talk.ask("one")
        await agent.result(asked)
        await talk.see("agent_message_chunk", since=since)
        assert await agent.call("auth/logout", {}) == {}
        assert (await talk.end_of(asked, since)).stop == "cancelled"
        known = {"sessionId": talk.session_id, "cwd": str(home.work)}
        for method in ("session/new", "session/resume", "session/list"):
            await refused(agent, method, known if method != "session/list" else {}, -32000)
        with pytest.raises(Refused) as error:
            await talk.turn("two")
        assert error.value.code == -32000
        await refused(agent, "auth/login", {"methodId": "setup"}, -32602)
        assert await agent.call("auth/login", {"methodId": "config"}) == {}
        assert (await talk.turn("three")).text == "three"


async def test_a_login_that_fails_leaves_the_client_out(home: Home) -> None:
    home.configure('kind = "openai"\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\napi_key_env = "NO_KEY"')
    async with home.start(edition="schema-v2") as agent:
        await greet(agent)
        await agent.call("auth/logout", {})
        await refused(agent, "auth/login", {"methodId": "config"}, -32000)
        await refused(agent, "session/new", {"cwd": str(home.work)}, -32000)
