"""What a context trimmer is made with, and its compact form `strategy:max_tokens/keep_last`. Pure."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from runtime.errors import ConfigError
from runtime.profiles import BUILT_IN_CONTEXTS, LoopContext
from runtime.summaries import Summary

Summarise = Callable[[str, str], Awaitable[Summary]]
"""Asks a model: instructions, then the text that they are about. Raises ProviderError."""

COUNT, TOKEN_BUDGET, SUMMARIZE = BUILT_IN_CONTEXTS
FORMS = "count:KEEP_LAST, token-budget:MAX_TOKENS, summarize:MAX_TOKENS/KEEP_LAST"


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


def parse_descriptor(text: str) -> LoopContext:
    """`count:8`, `token-budget:8000` or `summarize:8000/4` as settings; a name alone is one's own strategy.

    Raises ConfigError.
    """
    strategy, found, sizes = text.partition(":")
    needs = BUILT_IN_CONTEXTS.get(strategy)
    if needs is None:
        # One's own: a name, or `package.module:factory`.
        return LoopContext(text)
    values = sizes.split("/") if found else []
    if len(values) != len(needs) or not all(value.isdecimal() and int(value) > 0 for value in values):
        raise ConfigError(f"the context {text[:80]!r} cannot be read; it may be {FORMS}")
    given = dict(zip(needs, map(int, values), strict=True))
    return LoopContext(strategy, given.get("keep_last"), given.get("max_tokens"))
