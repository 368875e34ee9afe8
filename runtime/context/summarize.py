"""The trimmer that folds old rounds into one whose results hold a summary of all of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from runtime.context.settings import SUMMARIZE, Summarise, TrimmerSettings
from runtime.errors import ConfigError, WholeturnError
from runtime.history.truncate import truncate_tool_result
from runtime.iterations import Iteration, TrimView, iteration_tokens

HEADER = "[summary of earlier tool rounds]"
"""The first line of a result that holds a summary."""
SEE_FIRST = "[part of the summary above]"
"""The other results of the round that holds it."""
LONGEST_RESULT = 6000
"""Bytes of one result that are summarised."""

INSTRUCTIONS = """\
An agent is working on a task with tools. Below are the task and the oldest of its tool calls with their \
results. They will be replaced by what you write, so keep what the rest of the work may need: facts \
found, with paths, names, numbers and exact errors; what was changed; what was tried and failed. Report \
only what stands there. Give no advice, set no task, add no greeting. Be much shorter than the original."""


@dataclass(frozen=True, slots=True)
class FoldedRounds:
    """Above `max_tokens` all but the newest `keep_last` rounds become one.

    The oldest of them stays, with its ids and names, and its results hold the summary. Whatever it held is
    summarised with the rest the next time, so there is never more than one.
    """

    max_tokens: int
    keep_last: int
    summarise: Summarise
    name: str = SUMMARIZE

    async def trim(self, history: Sequence[Iteration], prompt: str) -> TrimView:
        """See `runtime.ports.ContextTrimmer`."""
        untouched = TrimView(history, trimmed=False, persist=True)
        old, new = history[: -self.keep_last], history[-self.keep_last :]
        over = sum(map(iteration_tokens, history)) > self.max_tokens
        if not over or not old or (len(old) == 1 and holds_summary(old[0])):
            return untouched
        try:
            answer = await self.summarise(INSTRUCTIONS, told(old, prompt))
        except WholeturnError as error:
            return TrimView(history, False, True, failure=f"The summary failed: {error.message}")
        folded = fold(old[0], answer.text)
        failure = ""
        if not answer.text:
            failure = "The summary was empty."
        elif iteration_tokens(folded) >= sum(map(iteration_tokens, old)):
            failure = "The summary was not smaller than what it would have replaced."
        if failure:
            return TrimView(history, False, True, failure=failure, usage=answer.used)
        return TrimView((folded, *new), True, True, summary=answer.text, usage=answer.used)


def fold(oldest: Iteration, text: str) -> Iteration:
    """The round that stands for all: its first result holds the summary."""
    others = [SEE_FIRST] * (len(oldest.tool_results) - 1)
    return oldest.with_outputs([f"{HEADER}\n{text}", *others])


def holds_summary(iteration: Iteration) -> bool:
    """Whether the round stands for others already."""
    return bool(iteration.tool_results) and iteration.tool_results[0].output.startswith(f"{HEADER}\n")


def told(rounds: Sequence[Iteration], prompt: str) -> str:
    """The rounds as the model that summarises reads them."""
    return "\n".join([f"<task>\n{cut(prompt)}\n</task>", *_rounds(rounds)])


def _rounds(rounds: Sequence[Iteration]) -> Iterator[str]:
    for one in rounds:
        if one.text:
            yield f"<said>\n{one.text}\n</said>"
        for call in one.tool_calls:
            yield f'<call name="{call.name}">{cut(call.arguments)}</call>'
        for result in one.tool_results:
            yield f"<result>\n{cut(result.output)}\n</result>"


def cut(text: str) -> str:
    """A text as far as it is summarised."""
    return truncate_tool_result(text, LONGEST_RESULT).text


def folded_rounds(settings: TrimmerSettings) -> FoldedRounds:
    """The trimmer `summarize`. Raises ConfigError without a model to ask."""
    if settings.summarise is None:
        raise ConfigError("the context strategy summarize needs a model to ask")
    return FoldedRounds(settings.max_tokens, settings.keep_last, settings.summarise)
