"""recall_history: the session's own transcript, also what the model is no longer sent, searched or read.

Every answer is capped: what does not fit is read on with `offset`.
"""

from collections.abc import Mapping, Sequence

from runtime.ports import Recall, Recalled, ToolContext, ToolOutcome, ToolRequest, ToolView
from runtime.tools.arguments import Arguments, Parameter, check, tool_spec
from runtime.tools.sandbox.paths import shorten
from runtime.values.errors import StoreError, ToolError
from runtime.values.events import ToolKind

PART = 8000
"""Characters of a turn in one answer."""
HITS = 8
SNIPPET = 400

_PARAMETERS = (
    Parameter("query", "string", "Words to look for."),
    Parameter("turn", "integer", minimum=1),
    Parameter("offset", "integer", "Characters to skip.", minimum=0),
)


class RecallHistory:
    """Reads the transcript of the session it runs in. Holds no state."""

    spec = tool_spec(
        "recall_history",
        "Search this conversation (query) or read one of its turns (turn), also what you can no longer see.",
        _PARAMETERS,
    )
    kind: ToolKind = "search"

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        """`Recall "migrations"`, `Recall turn 3`."""
        query, turn = arguments.get("query"), arguments.get("turn")
        if isinstance(query, str) and query:
            return ToolView(f'Recall "{shorten(query, 60)}"')
        return ToolView(f"Recall turn {turn}" if isinstance(turn, int) else "Recall earlier turns")

    async def request(self, arguments: Mapping[str, object], context: ToolContext) -> ToolRequest:
        """Reads what was said here."""
        _wanted(check(self.spec.name, _PARAMETERS, arguments))
        return ToolRequest("read", self.spec.name)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """The places found, or a part of a turn. Raises ToolError: no such turn, nothing to look in."""
        given = check(self.spec.name, _PARAMETERS, arguments)
        query, number = _wanted(given)
        if context.recall is None:
            raise ToolError("this conversation is not stored, so there is nothing to look it up in")
        try:
            if query:
                return ToolOutcome(found_text(query, await context.recall.search(query, HITS)))
            return ToolOutcome(await _part(context.recall, number, given.integer("offset", 0)))
        except StoreError as error:
            raise ToolError(f"the stored conversation cannot be read: {error.message}") from None


def _wanted(given: Arguments) -> tuple[str, int]:
    """The query, or '' and the number of the turn. Raises ToolError unless it is one of them."""
    query, number = given.text("query"), given.integer("turn", 0)
    if bool(query) == bool(number):
        raise ToolError("give either query or turn")
    return query, number


def found_text(query: str, places: Sequence[Recalled]) -> str:
    """The places, each with the turn to read for more."""
    if not places:
        return f"[nothing in this conversation matches {shorten(query, 60)!r}; other words may]"
    lines = [f"turn {place.turn}, {place.what}: {shorten(place.text, SNIPPET)}" for place in places]
    return "\n".join([*lines, "[read a whole turn with turn=N]"])


async def _part(recall: Recall, number: int, offset: int) -> str:
    text = await recall.turn(number)
    if text is None:
        raise ToolError(f"there is no turn {number}; search with query, the answers name turns")
    if offset and offset >= len(text):
        raise ToolError(f"turn {number} has {len(text)} characters; offset {offset} is past its end")
    end = offset + PART
    if end >= len(text):
        return text[offset:]
    return f"{text[offset:end]}\n[characters {offset}-{end} of {len(text)}; read on with offset={end}]"
