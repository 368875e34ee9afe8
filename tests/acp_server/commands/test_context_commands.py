"""`/context`, `/pin` and `/goal` in a conversation: what is answered, what the model is sent afterwards."""

import re
from dataclasses import replace
from typing import Any

import pytest

from acp_server.commands.commands import answer_locally
from acp_server.commands.context_commands import meter_of
from runtime.values.events import AgentText
from runtime.values.prompt import Prompt, with_goal
from tests.runtime.trimming.goal_rigs import Talk, replayed, sent, talk
from tests.support.fakes import call


async def told(one: Talk, text: str) -> str:
    """The answer to a command."""
    before = len(one.client.events)
    prompt = with_goal(Prompt(text, ({"type": "text", "text": text},)))
    await one.session.run(one.session.submit(prompt))
    texts = [event.text for event in one.client.events[before:] if isinstance(event, AgentText)]
    return "".join(texts)


async def ready(*replies: object, **settings: Any) -> Talk:
    one = await talk(*replies, **settings)
    one.session.conversation._local = answer_locally
    return one


async def test_the_meter_adds_up():
    one = await ready({"calls": [call("x" * 600)]}, {"text": "ok", "repeat": True}, max_context_tokens=15_000)
    for text in ("a", "b", "c", "d"):
        await one.say(text)
    answer = await told(one, "/context")
    sizes = [int(size) for size in re.findall(r"^\| [^*|]+ \| (\d+) \|", answer, re.MULTILINE)]
    (together,) = re.findall(r"\*\*together\*\* \| \*\*(\d+)\*\*", answer)
    assert sum(sizes) == int(together) == meter_of(one.session.conversation).estimated
    assert int(together) == one.keeper.fitted(check_capacity=False).raw_tokens
    assert re.search(r"\| turn 1 \| \d+ \| collapsed, \d+ saved, \*\*leaves next\*\* \|", answer) is None
    assert re.search(r"\| turn 2 \| \d+ \| \*\*leaves next\*\* \|", answer)
    assert re.search(r"\| turn 1 \| \d+ \| collapsed, \d+ saved \|", answer)
    assert "A trim starts above 12000" in answer


async def test_what_is_free_and_what_is_dropped():
    one = await ready()
    for text in "abcdefg":
        await one.say(text)
    answer = await told(one, "/context")
    assert f"{one.keeper.state.dropped_turns} turns are dropped" in answer
    meter = meter_of(one.session.conversation)
    assert meter.free == meter.target - meter.used > 0


async def test_pins_are_set_listed_and_let_go():
    one = await ready(retention="recent")
    for text in "abc":
        await one.say(text)
    assert await told(one, "/pin") == (
        "Nothing is pinned. `/pin N` keeps turn N through every trim; `/context` has the numbers."
    )
    assert "Turn 2 stays through every trim" in await told(one, "/pin 2")
    assert "- turn 2: b..." in await told(one, "/pin")
    for text in "defg":
        await one.say(text)
    assert one.prompts()[0] == "b"
    assert "pinned" in await told(one, "/context")
    assert await told(one, "/pin off 2") == "Turn 2 is not pinned any more."
    assert await told(one, "/pin off 2") == "Turn 2 was not pinned."
    await one.say("h")
    assert "b" not in one.prompts()
    assert list(map(sent, await replayed(one.store))) == list(map(sent, one.requests))


async def test_a_pin_that_would_not_fit_is_refused():
    one = await ready(retention="recent", max_context_tokens=15_000)
    for text in "abcd":
        await one.say(text)
    small = replace(one.keeper.setup.profile, max_context_tokens=900)
    one.keeper.use(replace(one.keeper.setup, profile=small))
    assert "stays" in await told(one, "/pin 1")
    assert "it would not fit" in await told(one, "/pin 2")
    assert len(one.keeper.state.pins) == 1


@pytest.mark.parametrize("words", ["99", "x", "0", "off 7", "1" * 30, "²"])
async def test_a_number_that_is_none(words):
    one = await ready()
    await one.say("a")
    assert "There is no turn" in await told(one, f"/pin {words}")


async def test_a_dropped_turn_cannot_be_pinned():
    one = await ready(retention="recent")
    for text in "abcdefg":
        await one.say(text)
    assert "does not see that turn any more" in await told(one, "/pin 1")


async def test_a_command_has_a_number_and_no_turn():
    one = await ready()
    await one.say("a")
    await told(one, "/pin")
    await one.say("b")
    assert "There is no turn 2 that the model has seen" in await told(one, "/pin 2")
    assert "stays" in await told(one, "/pin 3")


async def test_the_goal_is_told():
    one = await ready()
    assert "No goal is set" in await told(one, "/goal")
    await one.say("a")
    await told(one, "/goal fix it")
    assert await told(one, "/goal") == "The goal is: fix it Requests before it count as background."
    assert one.requests[-1].rows()[-1].content == "fix it"
