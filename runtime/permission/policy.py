"""The rules of one session and which of them speak about a call. Pure; decides nothing."""

import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath

from runtime.permission import addresses, commands, globs
from runtime.permission.rules import COMMAND_TOOL, WRITERS, Rule
from runtime.permission.shell import Command, Line
from runtime.ports import ToolRequest


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules that hold in a project. root: its folder, links resolved; patterns of files start there."""

    root: PurePath
    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()

    def with_answers(self, allow: Iterable[Rule], deny: Iterable[Rule]) -> "Policy":
        """Together with what was answered once and for all."""
        return replace(self, allow=(*self.allow, *allow), deny=(*self.deny, *deny))


def first_possible(rules: Iterable[Rule], call: "Call", policy: Policy) -> Rule | None:
    """The first rule that could mean the call."""
    return next((rule for rule in rules if _possible(rule, call, policy)), None)


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is judged. line: what its command would do, None when it is no command."""

    tool: str
    request: ToolRequest
    line: Line | None = None

    @property
    def is_guarded(self) -> bool:
        """Whether the call needs a look of its own, which no general rule replaces."""
        return self.request.outside or self.request.secret or bool(self.request.risk)


def covered(call: Call, policy: Policy) -> bool:
    """Whether the allow rules certainly mean all of the call."""
    rules = [rule for rule in policy.allow if rule.is_for(call.tool)]
    if call.line is not None:
        whole = not call.line.unclear and not call.line.writes and not call.is_guarded
        return whole and _is_at_home(call, policy) and not uncovered(call.line, rules)
    return any(_certain(rule, call.request, policy.root, guarded=call.is_guarded) for rule in rules)


def _is_at_home(call: Call, policy: Policy) -> bool:
    """Whether what the command names by a relative path is what the rule means by it."""
    line, paths = call.line, call.request.paths
    if line is None or all(path == policy.root for path in paths):
        return True
    return not any(commands.runs_a_file(command) for command in line.commands)


def uncovered(line: Line, rules: Iterable[Rule]) -> list[Command]:
    """The commands of a line that none of the rules covers."""
    patterns = [commands.parse_command(rule.pattern) for rule in rules]
    return [
        command
        for command in line.commands
        if not any(commands.covers(pattern, command) for pattern in patterns)
    ]


def _certain(rule: Rule, request: ToolRequest, root: PurePath, *, guarded: bool) -> bool:
    if not rule.pattern:
        return not guarded
    if request.action == "fetch":
        return not guarded and addresses.covers(addresses.parse_address(rule.pattern), request.subject)
    if not request.paths or (guarded and not _names_it(rule.pattern, request)):
        return False
    return all(_fits(rule.pattern, path, root) for path in request.paths)


def _names_it(pattern: str, request: ToolRequest) -> bool:
    """Whether a rule for guarded files means these: the very file, or by its path what is outside."""
    if request.secret or request.risk:
        return not globs.is_pattern(pattern)
    return pattern.startswith("/")


def _fits(pattern: str, path: PurePath, root: PurePath) -> bool:
    if pattern.startswith("/"):
        return globs.matches(pattern, path.as_posix())
    return path.is_relative_to(root) and globs.matches(pattern, path.relative_to(root).as_posix())


# ---------------------------------------------------------------- what could be meant


def _possible(rule: Rule, call: Call, policy: Policy) -> bool:
    if call.line is not None and rule.tool in WRITERS:
        names = [posixpath.join(policy.root.as_posix(), name) for name in call.line.writes]
        return any(not rule.pattern or _reaches(rule.pattern, name, policy.root) for name in names)
    if not rule.is_for(call.tool) or not rule.pattern:
        return rule.is_for(call.tool)
    if call.line is not None:
        return commands.may_mean(commands.parse_command(rule.pattern), call.line, call.request.subject)
    if call.request.action == "fetch":
        return addresses.may_mean(addresses.parse_address(rule.pattern), call.request.subject)
    return any(_reaches(rule.pattern, name, policy.root) for name in _names(call.request, policy.root))


def _names(request: ToolRequest, root: PurePath) -> Iterator[str]:
    yield from (path.as_posix() for path in request.paths)
    # What was asked for counts too, not only what it leads to.
    yield posixpath.join(root.as_posix(), request.subject)


def _reaches(pattern: str, name: str, root: PurePath) -> bool:
    path = posixpath.normpath(name)
    inside = posixpath.relpath(path, root.as_posix())
    return globs.reaches(pattern, path if pattern.startswith("/") else inside)


def may_be_hidden(call: Call, policy: Policy) -> bool:
    """Whether a rule that denies or asks could be about something that the command does not show."""
    if call.line is None or not commands.is_hidden(call.line):
        return False
    return any(rule.tool == COMMAND_TOOL and rule.pattern for rule in (*policy.deny, *policy.ask))
