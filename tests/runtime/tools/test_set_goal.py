"""set_goal: what it takes, what it says, and that it needs a turn."""

from dataclasses import replace

import pytest
import trio

from runtime.tools.talk.ask_and_plan import SetGoal
from runtime.values.errors import ToolError
from tests.runtime.tools.support import context


class Goals:
    """What the goal is."""

    def __init__(self) -> None:
        self.goal = ""

    async def set_goal(self, text: str) -> bool:
        await trio.lowlevel.checkpoint()
        changed, self.goal = text != self.goal, text
        return changed


async def test_a_goal_is_set_once(tmp_path):
    goals = Goals()
    there = replace(context(tmp_path), set_goal=goals.set_goal)
    first = await SetGoal().run({"goal": " the docs "}, there)
    again = await SetGoal().run({"goal": "the docs"}, there)
    assert (goals.goal, first.text, again.text) == (
        "the docs",
        "The goal is set.",
        "That is the goal already.",
    )


@pytest.mark.parametrize("arguments", [{"goal": " "}, {"goal": "x" * 2001}, {}, {"goal": 1}, {"need": "x"}])
async def test_what_is_no_goal(tmp_path, arguments):
    there = replace(context(tmp_path), set_goal=Goals().set_goal)
    with pytest.raises(ToolError):
        await SetGoal().run(arguments, there)


async def test_outside_of_a_turn_there_is_none(tmp_path):
    with pytest.raises(ToolError, match="keeps no goal"):
        await SetGoal().run({"goal": "x"}, context(tmp_path))


async def test_it_asks_nobody_and_shows_the_goal(tmp_path):
    tool = SetGoal()
    assert (await tool.request({"goal": "x"}, context(tmp_path))).action == "plan"
    assert tool.view({"goal": "the\n docs"}, context(tmp_path)).title == "Goal: the docs"
    assert tool.view({"goal": 5}, context(tmp_path)).title == "Set the goal"
