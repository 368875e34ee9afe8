"""A plan out of a call's arguments, and what a replay shows of calls that changed files or the plan."""

import pytest

from runtime.tools.talk.ask_and_plan import UpdatePlan
from runtime.transcript.restore import iteration_events
from runtime.transcript.turn_record import Iteration
from runtime.values.events import Event, FileDiff, PlanChanged, PlanEntry, ToolCallStarted
from runtime.values.prompt import PLAN_TOOL, plan_entries
from schemas.transcript import ANY_STEP, CallRecord, DiffRecord, ReplyStep, ToolStep

ENTRIES = {"entries": [{"content": "look", "status": "completed", "priority": "high"}, {"content": "mend"}]}
PLAN = (PlanEntry("look", "high", "completed"), PlanEntry("mend", "medium", "pending"))


def test_the_name_of_the_tool():
    assert UpdatePlan.spec.name == PLAN_TOOL


@pytest.mark.parametrize(
    ("arguments", "entries"),
    [
        (ENTRIES, PLAN),
        ({}, ()),
        ({"entries": "x"}, ()),
        (
            {"entries": ["x", {}, {"content": 3}, {"content": "a", "status": 3, "priority": "huge"}]},
            (PlanEntry("a"),),
        ),
    ],
)
def test_entries(arguments, entries):
    assert plan_entries(arguments) == entries


def shown(name: str, **step: object) -> list[Event]:
    """The events of one recorded call, after a way through the stored form."""
    call = CallRecord(call_id="c", id="1", name=name, arguments="{}")
    iteration = Iteration()
    iteration.reply = ReplyStep(iteration=0, message_id="m", text="", calls=(call,))
    stored = ToolStep.model_validate(
        {"iteration": 0, "call_id": "c", "status": "completed", "text": "t", **step}
    )
    read = ANY_STEP.validate_json(stored.model_dump_json())
    assert isinstance(read, ToolStep)
    iteration.tools["c"] = read
    return list(iteration_events(iteration))


def test_a_plan_is_shown_again():
    call, plan = shown(PLAN_TOOL, raw_input=ENTRIES)
    assert isinstance(call, ToolCallStarted)
    assert plan == PlanChanged(PLAN)


def test_a_plan_that_failed_was_never_shown():
    assert len(shown(PLAN_TOOL, raw_input=ENTRIES, status="failed")) == 1
    assert len(shown("other", raw_input=ENTRIES)) == 1


def test_a_diff_is_shown_again():
    diffs = (DiffRecord(path="/a", old_text="x", new_text="y"), DiffRecord(path="/b", new_text=""))
    (call,) = shown("edit_file", diffs=diffs)
    assert isinstance(call, ToolCallStarted)
    assert call.diffs == (FileDiff("/a", "x", "y"), FileDiff("/b", None, ""))
    assert call.content == "t"
