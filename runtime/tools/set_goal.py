"""set_goal: what the conversation is about from now on, declared by the model."""

from collections.abc import Mapping

from runtime.errors import ToolError
from runtime.events import ToolKind
from runtime.ports import ToolContext, ToolOutcome, ToolRequest, ToolView
from runtime.profiles import GOAL_TOOL
from runtime.tools.arguments import Parameter, check, tool_spec

_LONGEST = 2000

_PARAMETERS = (Parameter("goal", "string", required=True),)


class SetGoal:
    """Marks the running turn as the one that defines the task. Holds no state."""

    spec = tool_spec(
        GOAL_TOOL,
        "Say what the user wants now, in one sentence, when it is something else than before. This turn is "
        "then kept in view, and earlier requests count as background. Not for steps of the same task.",
        _PARAMETERS,
    )
    kind: ToolKind = "think"

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        """`Goal: …`."""
        goal = arguments.get("goal")
        text = " ".join(goal.split()) if isinstance(goal, str) else ""
        return ToolView(f"Goal: {text[:80]}" if text else "Set the goal")

    async def request(self, arguments: Mapping[str, object], context: ToolContext) -> ToolRequest:
        """Changes nothing outside the conversation."""
        check(self.spec.name, _PARAMETERS, arguments)
        return ToolRequest("plan", self.spec.name)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """Declares it. Raises ToolError for a goal that is empty or too long."""
        goal = check(self.spec.name, _PARAMETERS, arguments).text("goal").strip()
        if not goal or len(goal) > _LONGEST:
            raise ToolError(f"a goal is one sentence, at most {_LONGEST} characters")
        if context.set_goal is None:
            raise ToolError("this session keeps no goal")
        changed = await context.set_goal(goal)
        return ToolOutcome("The goal is set." if changed else "That is the goal already.")
