"""Whether a call may run: mode, rules, request -> verdict. Pure; asks nobody.

In this order: a deny rule; what the mode never lets happen; an ask rule; what the mode lets happen; an allow
rule; otherwise a person is asked.
"""

from dataclasses import dataclass

from runtime.permission import command_rules
from runtime.permission import patterns as addresses
from runtime.permission import patterns as globs
from runtime.permission.command_line import read_line
from runtime.permission.modes import ANSWERS, Answer, ModeId
from runtime.permission.rules import Call, Policy, Rule, covered, first_possible, may_be_hidden, uncovered
from runtime.ports import ToolRequest

PLAN_REFUSAL = (
    "The session is in plan mode: nothing may be changed and no command run. "
    "Work out a plan. When it is ready, call exit_plan_mode with it; without that tool, show it and stop."
)
UNKNOWN_EFFECTS = "in plan mode nothing may be changed, and this tool may change something"
NOT_PLANNING = "The session is not in plan mode, so there is nothing to leave: go on with the work."


@dataclass(frozen=True, slots=True)
class Verdict:
    """answer and why, a sentence; to the model when it is deny, to the person when it is ask.

    always: the rules that "always allow" would stand for, () when none is safe. never: the same for
    "never allow".
    """

    answer: Answer
    why: str = ""
    always: tuple[Rule, ...] = ()
    never: tuple[Rule, ...] = ()


ALLOWED = Verdict("allow")


def judge(tool: str, request: ToolRequest, mode: ModeId, policy: Policy) -> Verdict:
    """What happens to a call of that tool. Never raises."""
    call = Call(tool, request, read_line(request.subject) if request.action == "execute" else None)
    base = ANSWERS[mode][request.action]
    denied = first_possible(policy.deny, call, policy)
    if denied is not None:
        return Verdict("deny", f"The user's rule {denied} forbids this. Do not try another way around it.")
    if base == "deny":
        return Verdict("deny", NOT_PLANNING if request.action == "switch_mode" else PLAN_REFUSAL)
    asked = first_possible(policy.ask, call, policy)
    if asked is not None:
        return Verdict(
            "ask", f"the rule {asked} wants every such call to be asked", never=_never(call, policy)
        )
    if base == "allow":
        return _by_mode(call, mode, policy)
    if request.action == "switch_mode":
        # A choice between two others, which no rule can make.
        return _ask(call, policy)
    if mode == "plan" and request.action == "other" and not request.looks:
        return Verdict("ask", UNKNOWN_EFFECTS, never=_never(call, policy))
    return ALLOWED if covered(call, policy) else _ask(call, policy)


def _by_mode(call: Call, mode: ModeId, policy: Policy) -> Verdict:
    if mode == "yolo":
        if may_be_hidden(call, policy):
            return Verdict("ask", "it cannot be told whether one of your rules is about this command")
        return ALLOWED
    if not call.is_guarded or covered(call, policy):
        return ALLOWED
    return _ask(call, policy)


def _ask(call: Call, policy: Policy) -> Verdict:
    return Verdict("ask", _why(call), _always(call, policy), _never(call, policy))


def _why(call: Call) -> str:
    request, line = call.request, call.line
    if request.risk:
        return request.risk
    if request.secret:
        return "the file may hold secrets"
    if request.outside:
        return "it is outside the folders of this session"
    if line is not None and line.unclear:
        return f"no rule can speak about this command: {line.unclear}"
    if line is not None and line.writes:
        return "it writes a file by a redirection"
    return ""


def _always(call: Call, policy: Policy) -> tuple[Rule, ...]:
    if call.is_guarded:
        return ()
    if call.line is not None:
        return _command_rules(call, policy)
    return _one_rule(call, policy)


def _command_rules(call: Call, policy: Policy) -> tuple[Rule, ...]:
    line = call.line
    if line is None or line.unclear or line.writes:
        return ()
    open_ones = uncovered(line, (rule for rule in policy.allow if rule.is_for(call.tool)))
    patterns = dict.fromkeys(command_rules.suggest(command) for command in open_ones)
    if not patterns or None in patterns or len(patterns) > command_rules.MOST_SUGGESTED:
        return ()
    return tuple(Rule(call.tool, pattern) for pattern in patterns if pattern is not None)


def _never(call: Call, policy: Policy) -> tuple[Rule, ...]:
    line = call.line
    if line is None:
        return _one_rule(call, policy)
    if line.unclear or len(line.commands) != 1:
        return ()
    command = line.commands[0]
    pattern = command_rules.suggest(command) or command_rules.exactly(command)
    return () if pattern is None else (Rule(call.tool, pattern),)


def _one_rule(call: Call, policy: Policy) -> tuple[Rule, ...]:
    request = call.request
    if request.action == "fetch":
        pattern = addresses.suggest(request.subject)
        return () if pattern is None else (Rule(call.tool, pattern),)
    if request.action == "other":
        return (Rule(call.tool),)
    if request.action != "write" or len(request.paths) != 1:
        return ()
    path = request.paths[0]
    if not path.is_relative_to(policy.root):
        return ()
    name = path.relative_to(policy.root).as_posix()
    plain = name.isprintable() and not globs.is_pattern(name)
    return (Rule(call.tool, name),) if plain and name not in (".", "") else ()
