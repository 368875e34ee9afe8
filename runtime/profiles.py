"""What a session may keep and send: the profile's settings and the route a call takes. Reads no file."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

DEFAULT_MAX_TURNS = 50
DEFAULT_CONTEXT_TOKENS = 32_000
"""Tokens assumed for a budget nobody set and for a window nobody knows."""

HistoryUnit = Literal["turns", "messages"]
RunningTurnOverflow = Literal["fail", "shorten"]


@dataclass(frozen=True, slots=True)
class HistoryPruning:
    """The older way to lower the budget. The last two keys are read only to be warned about."""

    enabled: bool = False
    max_tokens: int = 8192
    keep_recent: int | None = None
    collapse_tool_results: bool | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """Retention settings of a session; the defaults are the preset `balanced`.

    Tokens are estimates (`history.estimate`), max_tool_result_chars is bytes with 0 = off. None means
    unset: 50 turns, 32,000 tokens, no ratio. An explicit 0 counts: max_history_messages=0 keeps the
    newest turn, max_context_tokens=0 trims only what the window cannot hold.
    """

    name: str = "balanced"
    max_history_messages: int | None = None
    history_unit: HistoryUnit = "turns"
    max_context_tokens: int | None = None
    context_compact_ratio: float | None = None
    history_pruning: HistoryPruning = HistoryPruning()
    keep_tool_context_turns: int = 2
    max_tool_result_chars: int = 50_000
    max_tool_iterations: int = 10
    running_turn_overflow: RunningTurnOverflow = "fail"
    trim_slack_ratio: float = 0.0


_BALANCED = Profile()
_ROOMY = replace(_BALANCED, running_turn_overflow="shorten", trim_slack_ratio=0.2)

PRESETS: Mapping[str, Profile] = MappingProxyType(
    {
        "tight": replace(
            _ROOMY,
            name="tight",
            max_history_messages=20,
            max_context_tokens=8_000,
            max_tool_result_chars=8_000,
        ),
        "local_small": replace(
            _ROOMY,
            name="local_small",
            max_history_messages=20,
            max_context_tokens=8_000,
            max_tool_result_chars=4_000,
            keep_tool_context_turns=1,
            max_tool_iterations=4,
        ),
        "balanced": _BALANCED,
        "unbounded": replace(
            _ROOMY,
            name="unbounded",
            max_history_messages=200,
            max_context_tokens=128_000,
            max_tool_result_chars=64_000,
            keep_tool_context_turns=8,
            max_tool_iterations=100,
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Route:
    """The provider and model of one call, and what is known of them. All figures are tokens.

    context_window: as configured for exactly this model, None or 0 when unknown (see `route_window`).
    learned_window: what the provider named in an overflow error this session.
    output_counted_apart: the provider does not take the answer out of the same window.
    """

    provider: str
    model: str
    context_window: int | None = None
    max_output_tokens: int | None = None
    output_counted_apart: bool = False
    learned_window: int | None = None


def profile_warnings(profile: Profile) -> tuple[str, ...]:
    """Sentences about settings that are accepted and no longer do anything (at most one)."""
    pruning = profile.history_pruning
    old = {"keep_recent": pruning.keep_recent, "collapse_tool_results": pruning.collapse_tool_results}
    named = [f"history_pruning.{key}" for key, value in old.items() if value is not None]
    if not named:
        return ()
    verb = "have" if len(named) > 1 else "has"
    return (f"{' and '.join(named)} {verb} no effect any more; set keep_tool_context_turns instead.",)


def route_window(
    configured_model: str | None, selected_model: str | None, context_window: int | None
) -> int | None:
    """The window that holds for the selected model, tokens; None when its capacity is unknown.

    A window belongs to the model it was configured for. No selection means that model; a profile that
    names no model lends its window to any selection.
    """
    configured, selected = (configured_model or "").strip(), (selected_model or "").strip()
    if configured and selected and configured != selected:
        return None
    return context_window
