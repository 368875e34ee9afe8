"""[runtime_profiles.NAME.loop_context]: to settings, and what is wrong in it. Pure, but for what is
installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from acp_server.config.keys import Key, key_text, printable, table
from acp_server.config.merge import Merged
from acp_server.config.models import model_of, pair_of
from acp_server.config.nearest import hint
from runtime.profiles import BUILT_IN_CONTEXTS, LoopContext, Profile

if TYPE_CHECKING:  # the schema is not loaded by a start without any setting
    from acp_server.config.settings import ModelConfig
    from schemas.config import LoopContextSection

IDLE = {"count": ("max_tokens", "model", "options"), "token-budget": ("keep_last", "model", "options")}
"""Keys that a strategy does not read."""


def loop_context(section: LoopContextSection | None) -> LoopContext | None:
    """The section as settings; None without one."""
    if not section:
        return None
    return LoopContext(
        section["strategy"],
        section.get("keep_last"),
        section.get("max_tokens"),
        section.get("model", ""),
        tuple(section.get("options", {}).items()),
    )


def helpers(merged: Merged, profiles: tuple[Profile, ...]) -> tuple[tuple[str, ModelConfig], ...]:
    """The models that profiles name for summaries, by the text that names them."""
    contexts = (profile.loop_context for profile in profiles)
    texts = [*(profile.summary_model for profile in profiles), *(one.model for one in contexts if one)]
    pairs = {text: pair_of(merged.tree, text) for text in texts if text}
    return tuple((text, model_of(merged, *pair)) for text, pair in pairs.items() if pair is not None)


def context_faults(merged: Merged) -> Iterator[str]:
    """Strategies that are not there, and what one needs."""
    for profile in table(merged.tree, "runtime_profiles"):
        key: Key = ("runtime_profiles", profile, "loop_context")
        section = cast("LoopContextSection", table(merged.tree, *key))
        if not section:
            continue
        strategy = section.get("strategy")
        if strategy is None:
            yield merged.says(key, f"{key_text(key)} needs a strategy: {' or '.join(BUILT_IN_CONTEXTS)}")
            continue
        for word in BUILT_IN_CONTEXTS.get(strategy, ()):
            if word not in section:
                yield merged.says(key, f"{key_text(key)} needs {word} with the strategy {strategy}")
        yield from _unknown(merged, (*key, "strategy"), strategy)


def context_remarks(merged: Merged) -> Iterator[str]:
    """Keys that the strategy in force does not read; another file may have set it."""
    for profile in table(merged.tree, "runtime_profiles"):
        section = table(merged.tree, "runtime_profiles", profile, "loop_context")
        strategy = str(section.get("strategy"))
        idle = IDLE.get(strategy, ("options",) if strategy in BUILT_IN_CONTEXTS else ())
        for word in (word for word in idle if word in section):
            key = ("runtime_profiles", profile, "loop_context", word)
            yield merged.says(key, f"{key_text(key)} has no effect with the strategy {strategy}")


def _unknown(merged: Merged, key: Key, strategy: str) -> Iterator[str]:
    if strategy in BUILT_IN_CONTEXTS or ":" in strategy:
        return
    from runtime.context.catalog import installed

    known = (*BUILT_IN_CONTEXTS, *installed())
    if strategy not in known:
        text = f'{key_text(key)} names the strategy "{printable(strategy)}", which is not there'
        yield merged.says(key, f"{text}{hint(strategy, known)}")
