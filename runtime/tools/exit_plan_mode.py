"""exit_plan_mode: the plan is shown to the person, who lets the session leave plan mode, or not.

The permission that it needs is the switch itself: when this runs, the session is in another mode already.
"""

from collections.abc import Mapping

from runtime.events import ToolKind
from runtime.ports import ToolContext, ToolOutcome, ToolRequest, ToolView
from runtime.tools.arguments import Parameter, check, tool_spec

_PARAMETERS = (Parameter("plan", "string", "Markdown.", required=True),)


class ExitPlanMode:
    """Touches nothing."""

    spec = tool_spec(
        "exit_plan_mode",
        "Only in plan mode: show the user your finished plan and ask to carry it out.",
        _PARAMETERS,
    )
    kind: ToolKind = "switch_mode"

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        """Always the same; the plan is shown with the question."""
        return ToolView("Carry out the plan")

    async def request(self, arguments: Mapping[str, object], context: ToolContext) -> ToolRequest:
        """Leaves plan mode. The subject is the plan."""
        return ToolRequest("switch_mode", check(self.spec.name, _PARAMETERS, arguments).text("plan"))

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """The plan was accepted."""
        plan = check(self.spec.name, _PARAMETERS, arguments).text("plan")
        return ToolOutcome("The user accepted the plan.", shown=plan)
