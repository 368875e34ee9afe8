"""What a person is asked: the call as it is shown, and the answers on offer, in words. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from runtime.events import ToolCallStarted
from runtime.permission.judge import Verdict
from runtime.permission.modes import ModeId
from runtime.permission.remembered import Effect
from runtime.permission.rules import COMMAND_TOOL, Rule
from runtime.ports import PermissionOption, ToolRequest

LONGEST_NAME = 160
"""Characters of an answer. What would be longer is not offered: nobody can agree to what they cannot read."""

ALLOW_ONCE = PermissionOption("allow_once", "Allow once", "allow_once")
REJECT_ONCE = PermissionOption("reject_once", "Reject", "reject_once")
LEAVE_PLAN = (
    PermissionOption("leave_ask", "Accept the plan, ask before each edit", "allow_once"),
    PermissionOption("leave_accept_edits", "Accept the plan and all edits", "allow_always"),
    PermissionOption("stay", "Keep planning", "reject_once"),
)
MODES_BY_OPTION: Mapping[str, ModeId] = {"leave_ask": "ask", "leave_accept_edits": "accept_edits"}
EFFECTS: Mapping[str, Effect] = {"allow_always": "allow", "reject_always": "deny"}
"""What of an answer is kept, by the kind of its option."""


def options(verdict: Verdict) -> tuple[PermissionOption, ...]:
    """The answers on offer. "Always" and "never" only where they can be put in words."""
    always = f"Always allow {_named(verdict.always)} in this project"
    never = f"Never allow {_named(verdict.never)} in this project"
    offered = [ALLOW_ONCE]
    if verdict.always and len(always) <= LONGEST_NAME:
        offered.append(PermissionOption("allow_always", always, "allow_always"))
    offered.append(REJECT_ONCE)
    if verdict.never and len(never) <= LONGEST_NAME:
        offered.append(PermissionOption("reject_always", never, "reject_always"))
    return tuple(offered)


def shown(call: ToolCallStarted, request: ToolRequest, verdict: Verdict) -> ToolCallStarted:
    """The call with all that a person needs to decide, for clients that show nothing else."""
    subject = request.subject if request.action in ("execute", "fetch", "switch_mode") else ""
    why = f"Asked because {verdict.why}." if verdict.why else ""
    text = "\n\n".join(part for part in (subject, why) if part)
    return replace(call, content=text or call.content, diffs=request.diffs or call.diffs)


def _named(rules: Sequence[Rule]) -> str:
    return " and ".join(_name(rule) for rule in rules)


def _name(rule: Rule) -> str:
    if rule.tool == COMMAND_TOOL:
        return f"`{rule.pattern.removesuffix('*')} …`" if rule.pattern.endswith("*") else f"`{rule.pattern}`"
    return f"{rule.tool} of {rule.pattern}" if rule.pattern else rule.tool
