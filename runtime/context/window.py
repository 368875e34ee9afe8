"""The trimmers that keep the newest rounds: so many, or as many as fit. Neither asks anyone."""

from collections.abc import Sequence
from dataclasses import dataclass

import trio

from runtime.context.settings import COUNT, TOKEN_BUDGET, TrimmerSettings
from runtime.iterations import Iteration, TrimView, iteration_tokens


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
        """See `runtime.ports.ContextTrimmer`."""
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
        """See `runtime.ports.ContextTrimmer`."""
        await trio.lowlevel.checkpoint()
        first = first_kept(list(map(iteration_tokens, history)), self.max_tokens, self.slack)
        return TrimView(history[first:], trimmed=first > 0)


def newest_rounds(settings: TrimmerSettings) -> NewestRounds:
    """The trimmer `count`."""
    return NewestRounds(settings.keep_last, settings.slack)


def newest_tokens(settings: TrimmerSettings) -> NewestTokens:
    """The trimmer `token-budget`."""
    return NewestTokens(settings.max_tokens, settings.slack)
