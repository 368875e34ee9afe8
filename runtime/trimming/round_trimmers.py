"""The built-in context trimmers: the newest rounds by count or by size, or old rounds folded into a summary.

Only the last one asks a model. Knows rounds, neither rows nor a turn.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import trio

from runtime.history.rows.collapse import truncate_tool_result
from runtime.history.rows.tool_rounds import Iteration, TrimView, iteration_tokens
from runtime.setup.session_setup import Summary
from runtime.values.errors import ConfigError, WholeturnError
from runtime.values.profiles import BUILT_IN_CONTEXTS

Summarise = Callable[[str, str], Awaitable[Summary]]
"""Asks a model: instructions, then the text that they are about. Raises ProviderError."""


COUNT, TOKEN_BUDGET, SUMMARIZE = BUILT_IN_CONTEXTS


@dataclass(frozen=True, slots=True)
class TrimmerSettings:
    """What a factory gets. keep_last: newest rounds; max_tokens: of rounds alone; 0 where it is not set.

    slack: share of the limit that a trim frees beyond it, so that the next one is rare. options: whatever the
    settings say for a strategy of one's own. summarise: asks the model, None where there is none to ask.
    """

    keep_last: int = 0
    max_tokens: int = 0
    slack: float = 0.0
    options: Mapping[str, object] = field(default_factory=dict)
    summarise: Summarise | None = None


def first_kept(weights: Sequence[int], limit: int, slack: float) -> int:
    """Where the newest rounds that fit begin; at least one is kept.

    Told by the rounds alone, so each pass finds the same: it goes over them as they came, and once they pass
    `limit` makes room down to `limit` less its slack.
    """
    aim = max(int(limit * (1 - slack)), 1)
    first = total = 0
    for index, weight in enumerate(weights):
        total += weight
        if total > limit:
            while first < index and total > aim:
                total -= weights[first]
                first += 1
    return first


@dataclass(frozen=True, slots=True)
class NewestRounds:
    """Keeps the newest `keep_last` rounds."""

    keep_last: int
    slack: float = 0.0
    name: str = COUNT

    async def trim(self, history: Sequence[Iteration], prompt: str) -> TrimView:
        await trio.lowlevel.checkpoint()
        first = first_kept([1] * len(history), self.keep_last, self.slack)
        return TrimView(history[first:], trimmed=first > 0)


@dataclass(frozen=True, slots=True)
class NewestTokens:
    """Keeps the newest rounds that together have at most `max_tokens`, at least one."""

    max_tokens: int
    slack: float = 0.0
    name: str = TOKEN_BUDGET

    async def trim(self, history: Sequence[Iteration], prompt: str) -> TrimView:
        await trio.lowlevel.checkpoint()
        first = first_kept(list(map(iteration_tokens, history)), self.max_tokens, self.slack)
        return TrimView(history[first:], trimmed=first > 0)


def newest_rounds(settings: TrimmerSettings) -> NewestRounds:
    """The trimmer `count`."""
    return NewestRounds(settings.keep_last, settings.slack)


def newest_tokens(settings: TrimmerSettings) -> NewestTokens:
    """The trimmer `token-budget`."""
    return NewestTokens(settings.max_tokens, settings.slack)


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
