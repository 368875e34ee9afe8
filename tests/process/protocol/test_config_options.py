"""Models, thought levels and profiles as a client sets them, with the real process and settings on disk."""

import json

import pytest

from tests.process.homes import Home, call, calls, says
from tests.support.wire_order import Json
from tests.support.wire_talk import Talk, greet, kinds, of_kind, refused, text_of

SETTINGS = """\
[agents.default]
provider = "first"
[providers.first]
kind = "scripted"
model = "one"
context_window = 50000
script = {first}
[providers.first.models.one]
price = {{ input = 1, output = 10 }}
[providers.second]
kind = "scripted"
model = "two"
context_window = 3000
script = {second}
[providers.thinker]
kind = "anthropic"
model = "deep"
"""
USAGE = {"input": 1000, "output": 100}


@pytest.fixture
def home(home: Home) -> Home:
    """A machine with three models; the first two answer with their names."""
    paths = {}
    for name in ("first", "second"):
        path = home.root / f"{name}.json"
        replies = [says(f"I am {name}.", usage=USAGE, repeat=True)]
        path.write_text(json.dumps({"replies": replies}))
        paths[name] = json.dumps(str(path))
    (home.root / "config" / "config.toml").write_text(SETTINGS.format(**paths))
    return home


async def choose(talk: Talk, option: str, value: str) -> dict[str, Json]:
    params = {"sessionId": talk.session_id, "configId": option, "value": value}
    result = await talk.agent.call("session/set_config_option", params)
    return by_id(result["configOptions"])


def by_id(options: list[Json]) -> dict[str, Json]:
    return {option["id"]: option for option in options}


def values(option: Json) -> list[str]:
    return [value["value"] for value in option["options"]]


async def test_a_new_session_says_what_it_can_be_set_to(home: Home) -> None:
    async with home.start() as agent:
        await greet(agent)
        result = await agent.call("session/new", {"cwd": str(home.work), "mcpServers": []})
        options = by_id(result["configOptions"])
        assert options["model"]["currentValue"] == "first/one"
        assert values(options["model"]) == ["first/one", "second/two", "thinker/deep"]
        assert options["model"]["category"] == "model"
        assert options["profile"]["category"] == "model_config"
        assert "thought_level" not in options


async def test_the_choice_is_used_told_and_comes_back_with_the_session(home: Home) -> None:
    async with home.talk() as talk:
        assert (await talk.turn("hi")).text == "I am first."
        options = await choose(talk, "model", "second/two")
        assert options["model"]["currentValue"] == "second/two"
        await choose(talk, "profile", "tight")
        turn = await talk.turn("and now?")
        assert turn.text == "I am second."
        assert "Now using second/two (window 3000)" in turn.asides
        assert "Now using the profile tight" in turn.asides
        assert of_kind(turn.updates, "usage_update")[-1]["size"] == 3000
    async with home.start() as agent:
        await greet(agent)
        params = {"sessionId": talk.session_id, "cwd": str(home.work), "mcpServers": []}
        found = by_id((await agent.call("session/load", params))["configOptions"])
        assert (found["model"]["currentValue"], found["profile"]["currentValue"]) == ("second/two", "tight")
        talk.agent = agent
        assert (await talk.turn("still?")).text == "I am second."


@pytest.mark.parametrize("by", ["option", "command"])
async def test_the_meter_moves_at_once(home: Home, by: str) -> None:
    async with home.talk() as talk:
        await talk.turn("hi")
        if by == "option":
            since = len(talk.agent.frames)
            await choose(talk, "model", "second/two")
            update = await talk.see("usage_update", since=since)
        else:
            update = of_kind((await talk.turn("/model second/two")).updates, "usage_update")[-1]
        assert (update["used"], update["size"]) == (1100, 3000)


async def test_a_choice_before_the_first_prompt_is_kept_by_a_killed_process(home: Home) -> None:
    async with home.talk() as talk:
        await choose(talk, "model", "second/two")
        talk.agent.process.kill()
        await talk.agent.process.wait()
    async with home.start() as agent:
        await greet(agent)
        params = {"sessionId": talk.session_id, "cwd": str(home.work), "mcpServers": []}
        found = by_id((await agent.call("session/load", params))["configOptions"])
        assert found["model"]["currentValue"] == "second/two"


async def test_levels_of_thought_are_offered_where_the_model_has_them(home: Home) -> None:
    async with home.talk() as talk:
        options = await choose(talk, "model", "thinker/deep")
        assert options["thought_level"]["category"] == "thought_level"
        assert values(options["thought_level"]) == ["default", "off", "low", "medium", "high"]
        options = await choose(talk, "thought_level", "high")
        assert options["thought_level"]["currentValue"] == "high"
        assert "thought_level" not in await choose(talk, "model", "first/one")


async def test_what_is_not_on_offer_is_refused_by_name(home: Home) -> None:
    async with home.talk() as talk:
        given = {"sessionId": talk.session_id, "configId": "model", "value": "first/two"}
        error = await refused(talk.agent, "session/set_config_option", given, -32602)
        assert "first/one, second/two, thinker/deep" in str(error)
        error = await refused(
            talk.agent, "session/set_config_option", {**given, "configId": "mode l"}, -32602
        )
        assert "there are mode, model" in str(error)
        await refused(
            talk.agent, "session/set_config_option", {**given, "type": "boolean", "value": True}, -32602
        )
        await refused(talk.agent, "session/set_config_option", {**given, "sessionId": "none"}, -32002)
        assert (await talk.turn("hi")).text == "I am first."


async def test_a_switch_during_a_turn_holds_from_the_next_one_on(home: Home) -> None:
    (home.work / "a.txt").write_text("seven")
    path = home.root / "first.json"
    slow = [calls(call("read_file", path="a.txt")), says(["first ", "ends"], chunk_delay=0.3)]
    path.write_text(json.dumps({"replies": slow}))
    async with home.talk() as talk:
        since = len(talk.agent.frames)
        asked = await talk.ask("go")
        await talk.see("tool_call", since=since)
        await choose(talk, "model", "second/two")
        turn = await talk.end_of(asked, since)
        assert (turn.text, turn.stop) == ("first ends", "end_turn")
        assert (await talk.turn("next")).text == "I am second."


async def test_the_commands_do_the_same_and_tell_the_client(home: Home) -> None:
    async with home.talk() as talk:
        turn = await talk.turn("/model")
        assert "`first/one` (by first, window of 50000 tokens) **in use**" in turn.text
        turn = await talk.turn("/model two")
        assert turn.text.startswith("From your next prompt on: `second/two`")
        (update,) = of_kind(turn.updates, "config_option_update")
        assert by_id(update["configOptions"])["model"]["currentValue"] == "second/two"
        assert (await talk.turn("hi")).text == "I am second."
        assert 'did you mean "tight"?' in (await talk.turn("/profile tigth")).text
        assert "From your next prompt on: `tight`" in (await talk.turn("/profile tight")).text


async def test_a_smaller_window_trims_with_a_notice_and_nothing_is_lost_from_view(home: Home) -> None:
    async with home.talk() as talk:
        for number in range(4):
            await talk.turn(f"{number} " * 1500)
        await choose(talk, "model", "second/two")
        turn = await talk.turn("go on")
        assert turn.text == "I am second."
        assert of_kind(turn.updates, "history_trimmed")
    async with home.resumed(talk) as replay:
        assert kinds(replay).count("user_message_chunk") == 5
        assert text_of(replay, "user_message_chunk").startswith("0 0 ")


async def test_cost_is_on_the_meter_and_in_its_command_and_goes_on_after_a_restart(home: Home) -> None:
    once = (1000 * 1 + 100 * 10) / 1e6
    async with home.talk() as talk:
        turn = await talk.turn("hi")
        cost = of_kind(turn.updates, "usage_update")[-1]["cost"]
        assert cost == {"amount": pytest.approx(once), "currency": "USD"}
    async with home.resumed(talk):
        turn = await talk.turn("more")
        assert of_kind(turn.updates, "usage_update")[-1]["cost"]["amount"] == pytest.approx(2 * once)
        told = (await talk.turn("/cost")).text
        assert "- Last turn: 1 call, input 1000, output 100; 0.0020 USD" in told
        assert "- Session: 2 calls, input 2000, output 200; 0.0040 USD" in told


async def test_a_model_that_went_from_the_settings_is_told(home: Home) -> None:
    async with home.talk() as talk:
        await choose(talk, "model", "second/two")
    path = home.root / "config" / "config.toml"
    text = path.read_text()
    path.write_text(text[: text.index("[providers.second]")] + text[text.index("[providers.thinker]") :])
    async with home.resumed(talk):
        turn = await talk.turn("who?")
        assert turn.text == "I am first."
        assert "The model 'second/two' of this session is not there any more." in turn.asides
