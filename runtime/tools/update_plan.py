"""update_plan: the steps of a longer job, shown to the person, whole each time."""

from collections.abc import Mapping

from runtime.errors import ToolError
from runtime.events import PlanChanged, ToolKind
from runtime.plan import PLAN_TOOL, PRIORITIES, STATUSES, plan_entries
from runtime.ports import ToolContext, ToolOutcome, ToolRequest, ToolView
from runtime.tools.arguments import Parameter, check, tool_spec

_MOST = 100
_LONGEST = 1000

_PARAMETERS = (
    Parameter(
        "entries",
        "list",
        required=True,
        items=(
            Parameter("content", "string", required=True),
            Parameter("status", "string", required=True, choices=STATUSES),
            Parameter("priority", "string", choices=PRIORITIES),
        ),
    ),
)


class UpdatePlan:
    """Tells the client; touches nothing else. Holds no state: the newest call is the plan."""

    spec = tool_spec(
        PLAN_TOOL,
        "Show the user your plan for a job of several steps. Give the whole plan each time, one step in "
        "progress.",
        _PARAMETERS,
    )
    kind: ToolKind = "think"

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        """`Plan: 2 of 5 done`."""
        entries = plan_entries(arguments)
        if not entries:
            return ToolView("Update the plan")
        done = sum(entry.status == "completed" for entry in entries)
        return ToolView(f"Plan: {done} of {len(entries)} done")

    async def request(self, arguments: Mapping[str, object], context: ToolContext) -> ToolRequest:
        """Shows a plan."""
        check(self.spec.name, _PARAMETERS, arguments)
        return ToolRequest("plan", self.spec.name)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """Shows it. Raises ToolError: no step, or too many or too long ones."""
        rows = check(self.spec.name, _PARAMETERS, arguments).rows("entries")
        if len(rows) > _MOST or any(len(row.text("content")) > _LONGEST for row in rows):
            raise ToolError(f"a plan has at most {_MOST} entries of {_LONGEST} characters")
        if not all(row.text("content").strip() for row in rows):
            raise ToolError("an entry has no content")
        entries = plan_entries(arguments)
        await context.client.emit(context.session_id, PlanChanged(entries))
        done = sum(entry.status == "completed" for entry in entries)
        return ToolOutcome(f"The plan is shown: {done} of {len(entries)} done.")
