"""Permission rules, `tool` or `tool:pattern`, parsed and checked, and which of a session's are about a call.

What a pattern is depends on the tool: the words of a command, an address, or a path relative to the project.
Pure; decides nothing and knows no list of tools.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import NamedTuple

from runtime.permission import command_rules
from runtime.permission import patterns as addresses
from runtime.permission import patterns as globs
from runtime.permission.command_line import Command, Line
from runtime.permission.command_rules import parse_command, promises_nothing
from runtime.permission.patterns import RuleError, check_glob, parse_address
from runtime.ports import ToolRequest

COMMAND_TOOL = "run_command"
FETCH_TOOL = "fetch_url"
WRITERS = ("write_file", "edit_file")
"""Tools whose deny rules a redirection of the shell must not get around."""

_TOOL = re.compile(r"[A-Za-z0-9_.-]+\*?|\*")


class Rule(NamedTuple):
    """tool: a name, which may end in `*`. pattern: '' for every call of it."""

    tool: str
    pattern: str = ""

    def __str__(self) -> str:
        return f"{self.tool}:{self.pattern}" if self.pattern else self.tool

    def is_for(self, tool: str) -> bool:
        """Whether the rule speaks of this tool."""
        return tool == self.tool or (self.tool.endswith("*") and tool.startswith(self.tool[:-1]))


def parse_rule(text: str) -> Rule:
    """A rule that may deny or ask. Raises RuleError."""
    tool, colon, pattern = (part.strip() for part in text.partition(":"))
    if not _TOOL.fullmatch(tool):
        raise RuleError("must begin with a tool's name: tool or tool:pattern")
    if not text.isprintable():
        raise RuleError("must be one line of visible characters")
    if colon and not pattern:
        raise RuleError(f"has nothing after its colon; for every call write {tool} alone")
    if pattern in ("*", "**"):
        pattern = ""
    if pattern and tool not in _CHECKS:
        pattern = pattern.removeprefix("./")
    if pattern:
        _CHECKS.get(tool, check_glob)(pattern)
    return Rule(tool, pattern)


def parse_allow(text: str) -> Rule:
    """A rule that may allow: one that could never allow anything is a mistake. Raises RuleError."""
    rule = parse_rule(text)
    if rule.tool == "*":
        raise RuleError('would allow every tool; that is what mode = "yolo" is for')
    if rule.tool == COMMAND_TOOL and rule.pattern and promises_nothing(parse_command(rule.pattern)):
        raise RuleError(
            "would allow nothing: its program runs what follows it, or belongs to the shell; "
            "name the whole command, without *"
        )
    return rule


_CHECKS = {COMMAND_TOOL: parse_command, FETCH_TOOL: parse_address}


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
    return not any(command_rules.runs_a_file(command) for command in line.commands)


def uncovered(line: Line, rules: Iterable[Rule]) -> list[Command]:
    """The commands of a line that none of the rules covers."""
    patterns = [command_rules.parse_command(rule.pattern) for rule in rules]
    return [
        command
        for command in line.commands
        if not any(command_rules.covers(pattern, command) for pattern in patterns)
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
        return command_rules.may_mean(
            command_rules.parse_command(rule.pattern), call.line, call.request.subject
        )
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
    if call.line is None or not command_rules.is_hidden(call.line):
        return False
    return any(rule.tool == COMMAND_TOOL and rule.pattern for rule in (*policy.deny, *policy.ask))
