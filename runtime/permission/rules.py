"""A permission rule as people write it, `tool` or `tool:pattern`, parsed and checked. Knows no list of tools.

What a pattern is depends on the tool: the words of a command, an address, or a path relative to the project.
"""

import re
from typing import NamedTuple

from runtime.permission.addresses import parse_address
from runtime.permission.commands import parse_command, promises_nothing
from runtime.permission.faults import RuleError
from runtime.permission.globs import check_glob

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
