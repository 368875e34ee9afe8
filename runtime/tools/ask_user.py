"""ask_user: a question to the person, who picks an answer or writes one. For clients that show forms."""

from collections.abc import Mapping

from runtime.errors import ToolError
from runtime.events import ToolKind
from runtime.ports import Question, ToolContext, ToolOutcome, ToolRequest, ToolView
from runtime.tools.arguments import Parameter, check, tool_spec
from runtime.tools.paths import shorten

_MOST = 20
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
    if len(choices) > _MOST or any(len(one) > _LONGEST for one in (text, *choices)):
        raise ToolError(f"at most {_MOST} choices, and {_LONGEST} characters for each and for the question")
    if len(set(choices)) < len(choices):
        raise ToolError("two choices are the same")
    return Question(text, choices)
