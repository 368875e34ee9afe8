"""The last check before dispatch and the warnings that go with a call, each said once."""

from dataclasses import replace

from runtime.errors import ContextWindowExceeded
from runtime.events import Noticed
from runtime.history.budget import CAPACITY_MARGIN, ContextBudget
from runtime.history.load import Load
from runtime.history.turns import Marks
from runtime.profiles import Profile

TRIMS_BEFORE_HINT = 3
PINNED = " Pinned turns are never left out: `/pin off N` lets one go."


def overfull(estimated_tokens: int, budget: ContextBudget) -> bool:
    """True when a prepared request is larger than the window takes."""
    return estimated_tokens > budget.window - CAPACITY_MARGIN


def require_capacity(
    estimated_tokens: int, budget: ContextBudget, profile: Profile, *, pinned: bool = False
) -> None:
    """Raise ContextWindowExceeded when a request cannot fit a known window. pinned: some turns may not go."""
    if budget.window_known and overfull(estimated_tokens, budget):
        raise ContextWindowExceeded(
            f"The request needs about {estimated_tokens} tokens; the model's context window holds "
            f"{budget.window}, {CAPACITY_MARGIN} of which stay free. Nothing was sent or lost. "
            f"{helpful_settings(profile)}{PINNED if pinned else ''}",
            estimated_tokens=estimated_tokens,
            model_context_window=budget.window,
        )


def helpful_settings(profile: Profile) -> str:
    """A sentence with the settings that make a request smaller or its window larger."""
    shorten = "" if profile.running_turn_overflow == "shorten" else ', running_turn_overflow = "shorten"'
    return (
        f"What helps: a smaller max_tool_result_chars{shorten}, fewer tools, a shorter prompt or system "
        "prompt, or a larger context_window if the model has one."
    )


def call_warnings(
    load: Load, profile: Profile, budget: ContextBudget, *, trimmed: bool
) -> tuple[tuple[Noticed, ...], Marks]:
    """The warnings of this call that were not given earlier in the turn, and the marks afterwards."""
    marks = load.history.marks
    found = {"floor": _floor(load, budget), "window": _unknown_window(load, budget)}
    fresh = {key: said for key, said in found.items() if said is not None and key not in marks.warned}
    marks = replace(marks, warned=marks.warned | fresh.keys(), trimmed=marks.trimmed or trimmed)
    hint = _slack_hint(marks, profile, trimmed=trimmed)
    if hint is None:
        return tuple(fresh.values()), marks
    return (*fresh.values(), hint), replace(marks, hinted=True)


def _floor(load: Load, budget: ContextBudget) -> Noticed | None:
    fixed = load.shape.calibrated(load.history.system.floor + load.fixed)
    if not 0 < budget.budget <= fixed:
        return None
    return Noticed(
        "warning",
        "System prompt and tools fill the context budget",
        f"They take about {fixed} tokens, the budget is {budget.budget}: only the newest turn is kept. "
        "Raise max_context_tokens or offer fewer tools.",
    )


def _unknown_window(load: Load, budget: ContextBudget) -> Noticed | None:
    estimated = load.request_tokens()
    if budget.window_known or not overfull(estimated, budget):
        return None
    return Noticed(
        "warning",
        "The request may be too large for the model",
        f"It needs about {estimated} tokens and the model's window is not known ({budget.window} are "
        "assumed). Set context_window for this model.",
    )


def _slack_hint(marks: Marks, profile: Profile, *, trimmed: bool) -> Noticed | None:
    often = trimmed and marks.trims_in_a_row + 1 >= TRIMS_BEFORE_HINT
    if not often or marks.hinted or profile.trim_slack_ratio > 0:
        return None
    return Noticed(
        "info",
        "History is trimmed on every prompt",
        "Set trim_slack_ratio = 0.2 to trim more at once and less often; the provider's prompt cache "
        "then serves more of each request.",
    )
