"""Which context trimmers there are, by name, and what one is made with. Knows no turn.

One's own comes by an entry point or as `package.module:factory`. The compact form of the settings is
`strategy:max_tokens/keep_last`.
"""

import logging
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import cast

from runtime.ports import ContextTrimmer
from runtime.trimming.round_trimmers import COUNT, SUMMARIZE, TOKEN_BUDGET, Summarise, TrimmerSettings
from runtime.values.errors import ConfigError
from runtime.values.profiles import BUILT_IN_CONTEXTS, LoopContext

FORMS = "count:KEEP_LAST, token-budget:MAX_TOKENS, summarize:MAX_TOKENS/KEEP_LAST"


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


log = logging.getLogger("wholeturn.context")

MOST_TOLD = 300
"""Characters of what a factory of one's own raised."""
GROUP = "wholeturn.context_trimmers"
"""The group of entry points; each is a factory."""

Factory = Callable[[TrimmerSettings], ContextTrimmer]

BUILT_IN: Mapping[str, str] = {
    COUNT: "runtime.trimming.round_trimmers:newest_rounds",
    TOKEN_BUDGET: "runtime.trimming.round_trimmers:newest_tokens",
    SUMMARIZE: "runtime.trimming.round_trimmers:folded_rounds",
}


def installed() -> tuple[str, ...]:
    """The names that packages here bring."""
    # Reading what is installed takes a while; only settings that name none of ours need it.
    metadata = import_module("importlib.metadata")
    return tuple(point.name for point in metadata.entry_points(group=GROUP))


def is_dotted(strategy: str) -> bool:
    """Whether it names a factory in a module."""
    return ":" in strategy


def create(strategy: str, settings: TrimmerSettings) -> ContextTrimmer:
    """The trimmer of a strategy. Raises ConfigError."""
    make = factory(strategy)
    try:
        made = make(settings)
    except ConfigError:
        raise
    except Exception as error:
        log.debug("the factory of the context strategy %r failed", strategy, exc_info=True)
        told = f"{type(error).__name__}: {error}"[:MOST_TOLD]
        raise ConfigError(f"the context strategy {strategy!r} cannot be made: {told}") from None
    if not is_trimmer(made):
        raise ConfigError(f"the context strategy {strategy!r} gave no trimmer: it needs a name and trim()")
    return made


def is_trimmer(made: object) -> bool:
    """Whether it has what a trimmer needs."""
    named = isinstance(getattr(made, "name", None), str)
    return named and callable(getattr(made, "trim", None)) and not isinstance(made, type)


def trimmer_of(context: LoopContext, slack: float, summarise: Summarise | None) -> ContextTrimmer:
    """The trimmer of a profile. Raises ConfigError."""
    settings = TrimmerSettings(
        context.keep_last or 0, context.max_tokens or 0, slack, dict(context.options), summarise
    )
    return create(context.strategy, settings)


def factory(strategy: str) -> Factory:
    """What makes the trimmer. Raises ConfigError for a strategy that is not there."""
    dotted = BUILT_IN.get(strategy, strategy)
    try:
        if is_dotted(dotted):
            module, _, name = dotted.partition(":")
            return cast(Factory, getattr(import_module(module), name))
        metadata = import_module("importlib.metadata")
        for point in metadata.entry_points(group=GROUP, name=strategy):
            return cast(Factory, point.load())
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"the context strategy {strategy!r} cannot be loaded: {error}") from None
    known = ", ".join((*BUILT_IN, *installed()))
    raise ConfigError(f"there is no context strategy {strategy!r}; known: {known}, or package.module:factory")
