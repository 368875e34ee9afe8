"""Permission modes as a client sees and sets them, by the real process: as modes and as an option."""

import json

import pytest

from tests.process.homes import Home, call, calls, says
from tests.support.wire_order import Json
from tests.support.wire_talk import Talk, greet, of_kind, refused

MODES = ["ask", "accept_edits", "plan", "yolo"]


@pytest.fixture
def home(home: Home) -> Home:
    """A machine with a model that says a word."""
    home.script(says("yes", repeat=True))
    return home


def option(result: Json) -> Json:
    return next(one for one in result["configOptions"] if one["id"] == "mode")


def mode_of(result: Json) -> str:
    """The mode, said twice."""
    assert option(result)["currentValue"] == result["modes"]["currentModeId"]
    return str(result["modes"]["currentModeId"])


async def set_mode(talk: Talk, mode: str) -> Json:
    return await talk.agent.call("session/set_mode", {"sessionId": talk.session_id, "modeId": mode})


async def opened_again(home: Home, talk: Talk, method: str = "session/load") -> str:
    async with home.start() as agent:
        await greet(agent)
        params = {"sessionId": talk.session_id, "cwd": str(home.work), "mcpServers": []}
        return mode_of(await agent.call(method, params))


async def test_a_new_session_names_the_modes(home: Home) -> None:
    async with home.start() as agent:
        await greet(agent)
        result = await agent.call("session/new", {"cwd": str(home.work), "mcpServers": []})
        assert mode_of(result) == "ask"
        assert [mode["id"] for mode in result["modes"]["availableModes"]] == MODES
        assert [value["value"] for value in option(result)["options"]] == MODES
        assert option(result)["category"] == "mode"


async def test_both_ways_of_setting_it_tell_the_other(home: Home) -> None:
    async with home.talk() as talk:
        assert await set_mode(talk, "yolo") == {}
        params = {"sessionId": talk.session_id, "configId": "mode", "value": "accept_edits"}
        assert (
            option(await talk.agent.call("session/set_config_option", params))["currentValue"]
            == "accept_edits"
        )
        told = of_kind(talk.updates(), "current_mode_update", "config_option_update")
        assert [update.get("currentModeId") or option(update)["currentValue"] for update in told] == [
            *("yolo", "yolo"),
            *("accept_edits", "accept_edits"),
        ]


async def test_setting_what_is_set_tells_nothing(home: Home) -> None:
    async with home.talk() as talk:
        await set_mode(talk, "ask")
        assert of_kind(talk.updates(), "current_mode_update", "config_option_update") == []


async def test_what_is_no_mode_is_refused_by_name(home: Home) -> None:
    async with home.talk() as talk:
        for mode in ("", "Ask", "bypass"):
            error = await refused(
                talk.agent, "session/set_mode", {"sessionId": talk.session_id, "modeId": mode}, -32602
            )
            assert "ask, accept_edits, plan, yolo" in str(error)
        params = {"sessionId": talk.session_id, "configId": "mode", "value": "none"}
        await refused(talk.agent, "session/set_config_option", params, -32602)
        await refused(talk.agent, "session/set_mode", {"sessionId": "none", "modeId": "ask"}, -32002)
        await refused(talk.agent, "session/set_mode", {"sessionId": talk.session_id}, -32602)


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_it_comes_back_with_the_session(home: Home, method: str) -> None:
    async with home.talk() as talk:
        await talk.turn("hi")
        await set_mode(talk, "plan")
        talk.agent.process.kill()
        await talk.agent.process.wait()
    assert await opened_again(home, talk, method) == "plan"


async def test_set_before_the_first_prompt_it_is_kept(home: Home) -> None:
    async with home.talk() as talk:
        await set_mode(talk, "plan")
    assert await opened_again(home, talk) == "plan"


async def test_set_during_a_turn_it_is_kept_with_its_end(home: Home) -> None:
    (home.work / "a.txt").write_text("seven")
    home.script(calls(call("read_file", path="a.txt")), says(["first ", "ends"], chunk_delay=0.3))
    async with home.talk() as talk:
        since = len(talk.agent.frames)
        asked = await talk.ask("go")
        await talk.see("tool_call", since=since)
        await set_mode(talk, "accept_edits")
        assert (await talk.end_of(asked, since)).stop == "end_turn"
    assert await opened_again(home, talk) == "accept_edits"


async def test_the_mode_of_the_settings_counts_until_another_is_chosen(home: Home) -> None:
    async with home.talk() as talk:
        await talk.turn("hi")
    path = home.root / "config" / "config.toml"
    path.write_text(f"{path.read_text()}\n[permissions]\nmode = {json.dumps('plan')}\n")
    assert await opened_again(home, talk) == "plan"
