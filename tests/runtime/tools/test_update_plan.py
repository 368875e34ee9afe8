"""update_plan: the whole plan to the client, each time."""

import pytest

from runtime.tools.talk.ask_and_plan import UpdatePlan
from runtime.values.errors import ToolError
from runtime.values.events import PlanChanged, PlanEntry
from tests.runtime.tools.support import Editor, context

TOOL = UpdatePlan()
ENTRIES = [
    {"content": "look", "status": "completed", "priority": "high"},
    {"content": "mend", "status": "in_progress"},
    {"content": "test", "status": "pending", "priority": "low"},
]


async def test_the_client_gets_all_of_it(tmp_path):
    editor = Editor()
    outcome = await TOOL.run({"entries": ENTRIES}, context(tmp_path, client=editor))
    assert outcome.text == "The plan is shown: 1 of 3 done."
    (event,) = editor.plans
    assert event == PlanChanged(
        (
            PlanEntry("look", "high", "completed"),
            PlanEntry("mend", "medium", "in_progress"),
            PlanEntry("test", "low", "pending"),
        )
    )


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (None, "needs the argument entries"),
        ([], "entries must be a list of objects, not empty"),
        ([{"content": "x"}], "entries, entry 1 needs the argument status"),
        ([{"content": "x", "status": "done"}], "status must be one of pending, in_progress, completed"),
        ([{"content": " ", "status": "pending"}], "an entry has no content"),
        ([{"content": "x" * 2000, "status": "pending"}], "at most 100 entries of 1000 characters"),
        ([{"content": "x", "status": "pending"}] * 101, "at most 100 entries"),
    ],
)
async def test_bad_calls(tmp_path, entries, said):
    editor = Editor()
    with pytest.raises(ToolError, match=said):
        await TOOL.run({"entries": entries}, context(tmp_path, client=editor))
    assert editor.plans == []


async def test_before_it_runs(tmp_path):
    where = context(tmp_path)
    assert TOOL.view({"entries": ENTRIES}, where).title == "Plan: 1 of 3 done"
    for wrong in ({}, {"entries": 3}, {"entries": [{"content": 1}]}):
        assert TOOL.view(wrong, where).title == "Update the plan"
    assert (await TOOL.request({"entries": ENTRIES}, where)).action == "plan"
    assert TOOL.kind == "think"
