"""The embedding API: the README's examples as they stand, and what `Agent` promises."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from runtime import Agent, FunctionTool
from runtime.store.memory import MemoryStore
from runtime.trimming.round_trimmers import NewestRounds
from runtime.values.errors import ConfigError, ProviderError
from runtime.values.events import ToolCallChanged
from tests.support.fakes import script

README = Path(__file__).parents[3] / "runtime" / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
EXAMPLES = [block for block in BLOCKS if ".run(main" in block]


def test_there_are_four_examples():
    assert len(EXAMPLES) == 4


@pytest.mark.parametrize("number", range(4))
def test_an_example_prints_what_it_says(number: int, tmp_path: Path):
    """Run as a program of its own, in an empty folder."""
    code = EXAMPLES[number]
    root = README.parents[1]
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.stderr, ran.returncode) == ("", 0)
    assert ran.stdout.splitlines() == re.findall(r"# -> (.*)", code)


def test_importing_the_package_loads_none_of_it():
    heavy = "[name for name in sys.modules if name.startswith(('runtime.', 'trio'))]"
    code = f"import sys, runtime; print({heavy})"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=README.parents[1],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ran.stdout.strip() == "[]"


def looking(seen: list[object]) -> FunctionTool:
    async def look(arguments):
        await trio.lowlevel.checkpoint()
        seen.append(arguments)
        return "nothing"

    return FunctionTool("look", "Look.", look)


CALL = {"name": "look", "arguments": {"at": "x"}}


async def test_events_are_heard_as_they_happen():
    heard: list[object] = []

    async def on_event(event):
        await trio.lowlevel.checkpoint()
        heard.append(event)

    model = script({"calls": [CALL]}, {"text": "done"})
    async with Agent(model, tools=[looking([])], on_event=on_event) as agent:
        await agent.ask("go")
    assert [event.status for event in heard if isinstance(event, ToolCallChanged)] == [
        "in_progress",
        "completed",
    ]


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_call_that_changes_something_is_asked_about(allowed: bool):
    seen: list[object] = []
    asked: list[str] = []

    async def approve(call):
        await trio.lowlevel.checkpoint()
        asked.append(call.name)
        return allowed

    model = script({"calls": [CALL]}, {"text": "done"})
    async with Agent(model, tools=[looking(seen)], approve=approve) as agent:
        assert (await agent.ask("go")).text == "done"
    assert asked == ["look"]
    assert seen == ([{"at": "x"}] if allowed else [])


async def test_a_session_goes_on_in_the_same_store():
    store = MemoryStore()
    for number, text in enumerate(("one", "two"), 1):
        model = script({"text": "ok"})
        async with Agent(model, store=store, session_id="mine") as agent:
            await agent.ask(text)
            assert sum(row.role == "user" for row in model.requests[0].rows()) == number


@pytest.mark.parametrize("context", ["count:1", NewestRounds(1)])
async def test_a_trimmer_by_its_descriptor_or_as_an_object(context):
    model = script({"calls": [CALL], "repeat": 3}, {"text": "done"})
    async with Agent(model, tools=[looking([])], context=context) as agent:
        answer = await agent.ask("go")
    assert [trim.strategy for trim in answer.trims] == ["count", "count"]


async def test_a_goal_is_a_prompt_here_too():
    model = script({"text": "ok", "repeat": True})
    async with Agent(model) as agent:
        await agent.ask("a")
        await agent.ask("/goal b")
    rows = model.requests[-1].rows()
    assert rows[-1].content == "b"
    assert "Goal changed: b" in rows[0].content


async def test_an_error_is_raised_and_the_next_prompt_works():
    model = script({"error": {"status": 401, "message": "no"}}, {"text": "ok"})
    async with Agent(model) as agent:
        with pytest.raises(ProviderError):
            await agent.ask("a")
        answer = await agent.ask("b")
    assert (answer.text, answer.notices) == ("ok", ())


async def test_outside_of_async_with_there_is_no_session():
    with pytest.raises(RuntimeError, match="async with"):
        await Agent(script({"text": "x"})).ask("a")


class Nameless:
    async def trim(self, history, prompt):
        raise AssertionError("never asked")


@pytest.mark.parametrize("context", [Nameless(), NewestRounds, 8])
def test_what_is_no_trimmer_is_told_at_once(context):
    with pytest.raises(ConfigError, match=r"no trimmer; it must be an object with a name"):
        Agent(script({"text": "x"}), context=context)


def test_a_descriptor_that_cannot_be_read_is_told_at_once():
    with pytest.raises(ConfigError, match="count:KEEP_LAST"):
        Agent(script({"text": "x"}), context="count")
