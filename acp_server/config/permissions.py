"""What is wrong with the rules of a permission section. Pure."""

from collections.abc import Iterator
from typing import cast

from acp_server.config.keys import Key, key_text, printable, table
from acp_server.config.layers import Layer
from acp_server.config.nearest import hint
from runtime.permission.faults import RuleError
from runtime.permission.rules import Rule, parse_allow, parse_rule
from runtime.profiles import TOOLS

SECTION = "permissions"
CHECKS = {"allow": parse_allow, "ask": parse_rule, "deny": parse_rule}
MCP_PREFIX = "mcp__"
"""Tools of servers are known only when a session runs."""
PLAIN_TOOLS = ("update_plan", "exit_plan_mode")
"""Tools whose calls are all alike."""


def rule_faults(layer: Layer) -> Iterator[str]:
    """What keeps a rule from being used, each with the place of its list. The layer must fit the schema."""
    for word, check in CHECKS.items():
        key: Key = (SECTION, word)
        for text in cast("list[str]", table(layer.tree, SECTION).get(word, [])):
            try:
                complaint = _unknown(check(text))
            except RuleError as error:
                complaint = str(error)
            if complaint:
                yield layer.says(key, f'{key_text(key)}: "{printable(text)}" {complaint}')


def _unknown(rule: Rule) -> str:
    if rule.tool.startswith(MCP_PREFIX) or rule.tool in PLAIN_TOOLS:
        return "can have no pattern: its calls are not told apart" if rule.pattern else ""
    if any(rule.is_for(name) for name in TOOLS) or rule.tool == "*":
        return ""
    return f"names no tool that is there{hint(rule.tool.removesuffix('*'), TOOLS)}"
