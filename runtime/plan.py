"""The agent's plan out of the arguments of the call that sets it. Pure; used when it is set and on replay."""

from collections.abc import Mapping
from typing import get_args

from runtime.events import PlanEntry, PlanPriority, PlanStatus

PLAN_TOOL = "update_plan"
STATUSES: tuple[PlanStatus, ...] = get_args(PlanStatus)
PRIORITIES: tuple[PlanPriority, ...] = get_args(PlanPriority)


def plan_entries(arguments: Mapping[str, object]) -> tuple[PlanEntry, ...]:
    """The steps that can be read; what is missing in one has its default."""
    found = arguments.get("entries")
    rows = found if isinstance(found, list) else []
    return tuple(
        _entry(row) for row in rows if isinstance(row, Mapping) and isinstance(row.get("content"), str)
    )


def _entry(row: Mapping[str, object]) -> PlanEntry:
    status: PlanStatus = next((known for known in STATUSES if known == row.get("status")), "pending")
    priority: PlanPriority = next((known for known in PRIORITIES if known == row.get("priority")), "medium")
    return PlanEntry(str(row["content"]), priority, status)
