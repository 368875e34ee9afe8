"""ask_user, exit_plan_mode, set_goal, update_plan: tools by which a model talks to the person.

The permission that exit_plan_mode needs is the switch itself: when it runs, the session is in another mode
already.
"""

from collections.abc import Mapping

from runtime.ports import Question, ToolContext, ToolOutcome, ToolRequest, ToolView
from runtime.tools.arguments import Parameter, check, tool_spec
from runtime.tools.sandbox.paths import shorten
from runtime.values.errors import ToolError
from runtime.values.events import PlanChanged, ToolKind
from runtime.values.profiles import GOAL_TOOL
from runtime.values.prompt import PLAN_TOOL, PRIORITIES, STATUSES, plan_entries

_MOST_CHOICES = 20
_LONGEST = 2000

_PARAMETERS = (
    Parameter("question", "string", required=True),
    Parameter("choices", "list", items=(Parameter("answer", "string", required=True),)),
)


class AskUser:
    """Waits for the person. Touches nothing."""

    spec = tool_spec(
        "ask_user",
        "Ask the user what you cannot find out and need to go on. Never for passwords or keys.",
        _PARAMETERS,
    )
    kind: ToolKind = "other"

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        """The question."""
        question = arguments.get("question")
        return ToolView(f"Ask: {shorten(question)}" if isinstance(question, str) and question else "Ask")

    async def request(self, arguments: Mapping[str, object], context: ToolContext) -> ToolRequest:
        """Talks with the person, as a plan does."""
        _question(arguments)
        return ToolRequest("plan", self.spec.name)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """The answer. Raises ToolError: too long a question, too many choices, the same one twice."""
        answer = await context.client.ask(context.session_id, _question(arguments))
        if answer is None:
            return ToolOutcome("The user did not answer. Go on as well as you can without it.", failed=True)
        return ToolOutcome(answer)


def _question(arguments: Mapping[str, object]) -> Question:
    given = check(AskUser.spec.name, _PARAMETERS, arguments)
    text, choices = given.text("question"), tuple(row.text("answer") for row in given.rows("choices"))
    if not text.strip() or any(not choice.strip() for choice in choices):
        raise ToolError("the question or a choice is empty")
    if len(choices) > _MOST_CHOICES or any(len(one) > _LONGEST for one in (text, *choices)):
        raise ToolError(
            f"at most {_MOST_CHOICES} choices, and {_LONGEST} characters for each and for the question"
        )
    if len(set(choices)) < len(choices):
        raise ToolError("two choices are the same")
    return Question(text, choices)


_EXIT_PARAMETERS = (Parameter("plan", "string", "Markdown.", required=True),)


class ExitPlanMode:
    """Touches nothing."""

    spec = tool_spec(
        "exit_plan_mode",
        "Only in plan mode: show the user your finished plan and ask to carry it out.",
        _EXIT_PARAMETERS,
    )
    kind: ToolKind = "switch_mode"

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        """Always the same; the plan is shown with the question."""
        return ToolView("Carry out the plan")

    async def request(self, arguments: Mapping[str, object], context: ToolContext) -> ToolRequest:
        """Leaves plan mode. The subject is the plan."""
        return ToolRequest("switch_mode", check(self.spec.name, _EXIT_PARAMETERS, arguments).text("plan"))

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """The plan was accepted."""
        plan = check(self.spec.name, _EXIT_PARAMETERS, arguments).text("plan")
        return ToolOutcome("The user accepted the plan.", shown=plan)


_LONGEST_GOAL = 2000

_GOAL_PARAMETERS = (Parameter("goal", "string", required=True),)


class SetGoal:
    """Marks the running turn as the one that defines the task. Holds no state."""

    spec = tool_spec(
        GOAL_TOOL,
        "Say what the user wants now, in one sentence, when it is something else than before. This turn is "
        "then kept in view, and earlier requests count as background. Not for steps of the same task.",
        _GOAL_PARAMETERS,
    )
    kind: ToolKind = "think"

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        """`Goal: …`."""
        goal = arguments.get("goal")
        text = " ".join(goal.split()) if isinstance(goal, str) else ""
        return ToolView(f"Goal: {text[:80]}" if text else "Set the goal")

    async def request(self, arguments: Mapping[str, object], context: ToolContext) -> ToolRequest:
        """Changes nothing outside the conversation."""
        check(self.spec.name, _GOAL_PARAMETERS, arguments)
        return ToolRequest("plan", self.spec.name)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """Declares it. Raises ToolError for a goal that is empty or too long."""
        goal = check(self.spec.name, _GOAL_PARAMETERS, arguments).text("goal").strip()
        if not goal or len(goal) > _LONGEST_GOAL:
            raise ToolError(f"a goal is one sentence, at most {_LONGEST_GOAL} characters")
        if context.set_goal is None:
            raise ToolError("this session keeps no goal")
        changed = await context.set_goal(goal)
        return ToolOutcome("The goal is set." if changed else "That is the goal already.")


_MOST_ENTRIES = 100
_LONGEST_ENTRY = 1000

_PLAN_PARAMETERS = (
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
        _PLAN_PARAMETERS,
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
        check(self.spec.name, _PLAN_PARAMETERS, arguments)
        return ToolRequest("plan", self.spec.name)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """Shows it. Raises ToolError: no step, or too many or too long ones."""
        rows = check(self.spec.name, _PLAN_PARAMETERS, arguments).rows("entries")
        if len(rows) > _MOST_ENTRIES or any(len(row.text("content")) > _LONGEST_ENTRY for row in rows):
            raise ToolError(f"a plan has at most {_MOST_ENTRIES} entries of {_LONGEST_ENTRY} characters")
        if not all(row.text("content").strip() for row in rows):
            raise ToolError("an entry has no content")
        entries = plan_entries(arguments)
        await context.client.emit(context.session_id, PlanChanged(entries))
        done = sum(entry.status == "completed" for entry in entries)
        return ToolOutcome(f"The plan is shown: {done} of {len(entries)} done.")
