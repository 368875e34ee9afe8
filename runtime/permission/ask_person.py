"""The one who is asked before a tool runs: the verdict, and where it says "ask" the person's answer.

Nothing is allowed by an error, by no answer or by one that was not on offer. Questions of calls that run side
by side are asked one after the other, since some editors show only one; a question that an answer has settled
meanwhile is not asked. The answers on offer are put in words here. Knows no protocol.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import trio

from runtime.permission.judge import Verdict, judge
from runtime.permission.modes import DEFAULT_MODE, ModeId
from runtime.permission.remembered_answers import Effect, Remembered
from runtime.permission.rules import COMMAND_TOOL, Policy, Rule
from runtime.ports import Client, PermissionOption, ToolRequest
from runtime.values.events import ToolCallStarted

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


REJECTED = "The user did not allow this. Do something else, or ask what they would like."
NO_ANSWER = "Permission was asked for and not given, so this was not run."
CANCELLED = "The user stopped the turn instead of allowing this."
TOO_MANY = "The turn ends here: it has asked for permission {limit} times, the most that the settings allow."
MODE_CHANGED = "The plan was accepted; the session is now in the mode {mode!r}. Go on with the work."

log = logging.getLogger("wholeturn.permission")

Ends = Literal["", "cancelled", "too_many"]


@dataclass(frozen=True, slots=True)
class Decision:
    """allowed, or why not: a text for the model. ends: the turn is to end, and for what reason.

    note: for the model, with the call's result; '' for none. asked: a person was asked.
    """

    allowed: bool
    why: str = ""
    ends: Ends = ""
    note: str = ""
    asked: bool = False


ALLOWED = Decision(allowed=True)


async def told_to_nobody(mode: ModeId) -> None:
    """A change of mode that nobody hears of."""


class Approver:
    """Permission in one session. mode: in force from the next call on.

    on_mode: hears of every change of it.
    """

    def __init__(
        self,
        session_id: str,
        client: Client,
        policy: Policy,
        remembered: Remembered | None = None,
        *,
        mode: ModeId = DEFAULT_MODE,
        on_mode: Callable[[ModeId], Awaitable[None]] = told_to_nobody,
    ) -> None:
        self.mode: ModeId = mode
        self.on_mode = on_mode
        self._session_id = session_id
        self._client = client
        self._policy = policy
        self._remembered = remembered
        self._asked = 0
        self._limit = 0
        self._one_by_one = trio.Lock()

    def begin_turn(self, limit: int = 0) -> None:
        """Count questions anew. limit: the most of them in this turn, 0 for any number."""
        self._asked, self._limit = 0, limit

    def put(self, mode: ModeId) -> bool:
        """Go on in that mode, also within a turn; nobody is told. False: it was in force already."""
        changed, self.mode = mode != self.mode, mode
        return changed

    def allows(self, tool: str, request: ToolRequest) -> bool:
        """Whether such a call would run without a question."""
        return self._judge(tool, request).answer == "allow"

    async def approve(self, call: ToolCallStarted, request: ToolRequest) -> Decision:
        """Whether the call may run now. Waits for the person for as long as it takes; may be cancelled."""
        verdict = self._judge(call.name, request)
        if verdict.answer == "ask":
            async with self._one_by_one:
                # Another answer, or another mode, may have settled it while it waited.
                verdict = self._judge(call.name, request)
                if verdict.answer == "ask":
                    decision = await self._ask(call, request, verdict)
                    return replace(decision, asked=decision.ends != "too_many")
        return ALLOWED if verdict.answer == "allow" else Decision(allowed=False, why=verdict.why)

    def _judge(self, tool: str, request: ToolRequest) -> Verdict:
        policy = self._policy
        if self._remembered is not None:
            allow, deny = self._remembered.both()
            if allow or deny:
                policy = policy.with_answers(allow, deny)
        return judge(tool, request, self.mode, policy)

    async def _ask(self, call: ToolCallStarted, request: ToolRequest, verdict: Verdict) -> Decision:
        if self._limit and self._asked >= self._limit:
            return Decision(allowed=False, why=TOO_MANY.format(limit=self._limit), ends="too_many")
        self._asked += 1
        offered = LEAVE_PLAN if request.action == "switch_mode" else options(verdict)
        seen = shown(call, request, verdict)
        outcome = await self._client.request_permission(self._session_id, seen, offered)
        if outcome.cancelled:
            return Decision(allowed=False, why=CANCELLED, ends="cancelled")
        if outcome.chosen is None or outcome.chosen not in offered:
            return Decision(allowed=False, why=NO_ANSWER)
        return await self._answered(outcome.chosen, verdict)

    async def _answered(self, chosen: PermissionOption, verdict: Verdict) -> Decision:
        mode = MODES_BY_OPTION.get(chosen.option_id)
        if mode is not None:
            if self.put(mode):
                await self.on_mode(mode)
            return Decision(allowed=True, note=MODE_CHANGED.format(mode=mode))
        if chosen.kind in EFFECTS:
            await self._remember(chosen, verdict)
        return ALLOWED if chosen.kind.startswith("allow") else Decision(allowed=False, why=REJECTED)

    async def _remember(self, chosen: PermissionOption, verdict: Verdict) -> None:
        effect = EFFECTS[chosen.kind]
        rules = verdict.always if effect == "allow" else verdict.never
        if self._remembered is not None:
            try:
                await trio.to_thread.run_sync(self._remembered.add, effect, rules)
                return
            except OSError as error:
                log.warning("an answer holds for this session only, it could not be kept: %s", error)
        allow, deny = (rules, ()) if effect == "allow" else ((), rules)
        self._policy = self._policy.with_answers(allow, deny)
