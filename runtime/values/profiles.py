"""What a session may keep and send: the profile, the route a call takes, what its user may choose."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, NamedTuple

DEFAULT_MAX_TURNS = 50
DEFAULT_CONTEXT_TOKENS = 32_000
"""Tokens assumed for a budget nobody set and for a window nobody knows."""

TOOLS = (
    *("read_file", "list_dir", "find_files", "search_text", "edit_file", "write_file", "run_command"),
    *("update_plan", "exit_plan_mode", "ask_user", "fetch_url", "recall_history"),
)
"""Every tool of the agent's own, in the order in which a model is told of them."""
GOAL_TOOL = "set_goal"
"""Offered where it is named, and with `retention = "head-tail"`."""
FEW_TOOLS = ("read_file", "search_text", "edit_file", "write_file", "run_command", "recall_history")
"""What a job needs at least: a small window pays for each tool with every request."""

HistoryUnit = Literal["turns", "messages"]
RunningTurnOverflow = Literal["fail", "shorten"]
Retention = Literal["recent", "head-tail"]
DroppedTurns = Literal["omit", "summarize"]


@dataclass(frozen=True, slots=True)
class HistoryPruning:
    """The older way to lower the budget. The last two keys are read only to be warned about."""

    enabled: bool = False
    max_tokens: int = 8192
    keep_recent: int | None = None
    collapse_tool_results: bool | None = None


BUILT_IN_CONTEXTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"count": ("keep_last",), "token-budget": ("max_tokens",), "summarize": ("max_tokens", "keep_last")}
)
"""The built-in strategies of a loop context, with what each must be given."""


@dataclass(frozen=True, slots=True)
class LoopContext:
    """How the running turn's tool rounds are bounded: see `runtime.trimming.catalog`. None: not set.

    strategy: a built-in one, an installed one, or `package.module:factory`. model: the one to ask, '' for the
    session's own. options: for a strategy of one's own.
    """

    strategy: str
    keep_last: int | None = None
    max_tokens: int | None = None
    model: str = ""
    options: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """Retention settings of a session; the defaults are the preset `balanced`.

    Tokens are estimates (`history.estimate`), max_tool_result_chars is bytes with 0 = off. None means
    unset: 50 turns, 32,000 tokens, no ratio. An explicit 0 counts: max_history_messages=0 keeps the
    newest turn, max_context_tokens=0 trims only what the window cannot hold. tools: names of `TOOLS`.
    retention: which turns go first. dropped_turns: what stands for them; summary_model: the one that writes
    it, '' for the session's own. loop_context None: a running turn is sent with all its rounds.
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
    max_approvals: int = 0
    running_turn_overflow: RunningTurnOverflow = "fail"
    trim_slack_ratio: float = 0.0
    retention: Retention = "recent"
    dropped_turns: DroppedTurns = "omit"
    summary_model: str = ""
    loop_context: LoopContext | None = None
    tools: tuple[str, ...] = TOOLS


_BALANCED = Profile()
_ROOMY = replace(_BALANCED, running_turn_overflow="shorten", trim_slack_ratio=0.2)

BUILT_IN = replace(_BALANCED, name="default", trim_slack_ratio=0.2)
"""What holds where nobody wrote a profile. Whoever wrote one and named no slack gets none, as ever."""

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
            tools=FEW_TOOLS,
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
    learned_window: what the provider named in an overflow error this session, or (window_inferred) what it
    left of a prompt that it cut.
    output_counted_apart: the provider does not take the answer out of the same window.
    """

    provider: str
    model: str
    context_window: int | None = None
    max_output_tokens: int | None = None
    output_counted_apart: bool = False
    learned_window: int | None = None
    window_inferred: bool = False

    @property
    def id(self) -> str:
        """`provider/model`; the provider alone when no model is named."""
        return f"{self.provider}/{self.model}" if self.model else self.provider


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


MODEL, THOUGHT_LEVEL, PROFILE, MODE = "model", "thought_level", "profile", "mode"
"""The ids of what can be set. The mode is no part of a Choice: it holds at once, not with the next turn."""


class Choice(NamedTuple):
    """What was chosen; '' leaves it as it is configured. model: a route's id. profile: a name."""

    model: str = ""
    thought_level: str = ""
    profile: str = ""


AS_CONFIGURED = Choice()
"""Nothing was chosen."""


class Value(NamedTuple):
    """One thing that may be chosen, with what a person reads of it."""

    id: str
    name: str
    description: str = ""


class Offer(NamedTuple):
    """Something that can be set, its values (at least one), and the id of the one in force.

    category: ACP's word for what it is about.
    """

    id: str
    name: str
    category: str
    description: str
    current: str
    values: tuple[Value, ...]
