"""Secrets taken out of what comes in: prompts and tool results, before they are shown to the model or stored.

Both see the same text: a session that is loaded again has the history that it left, and a request can be made
again byte for byte. What the model writes is stored as it is; it has not seen what was taken out.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from runtime.ports import Tool, ToolContext, ToolOutcome, ToolRequest, ToolView
from runtime.values.errors import ToolError
from runtime.values.events import ToolKind
from runtime.values.prompt import Prompt
from runtime.values.rows import ToolSpec

MARK = "[redacted]"
_BINARY = ("data", "blob")
"""Fields of content blocks that hold base64: text that looks like a secret by chance."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """patterns: all that matches one of them is taken out."""

    patterns: tuple[re.Pattern[str], ...] = ()

    def text(self, text: str) -> str:
        """The text with a mark in each secret's place."""
        for pattern in self.patterns:
            text = pattern.sub(MARK, text)
        return text

    def prompt(self, prompt: Prompt) -> Prompt:
        """The prompt, its content blocks included."""
        if not self.patterns:
            return prompt
        blocks = (
            {name: self._value(name, value) for name, value in block.items()} for block in prompt.blocks
        )
        return prompt._replace(text=self.text(prompt.text), blocks=tuple(blocks))

    def tools(self, tools: Mapping[str, Tool]) -> Mapping[str, Tool]:
        """The tools, with their results redacted."""
        if not self.patterns:
            return tools
        return {
            name: tool if isinstance(tool, RedactedTool) else RedactedTool(tool, self)
            for name, tool in tools.items()
        }

    def outcome(self, outcome: ToolOutcome) -> ToolOutcome:
        """A tool's result."""
        diffs = tuple(
            replace(
                diff, old_text=diff.old_text and self.text(diff.old_text), new_text=self.text(diff.new_text)
            )
            for diff in outcome.diffs
        )
        return replace(outcome, text=self.text(outcome.text), shown=self.text(outcome.shown), diffs=diffs)

    def _value(self, name: str, value: object) -> object:
        if isinstance(value, str):
            return value if name in _BINARY else self.text(value)
        if isinstance(value, dict):
            return {inner: self._value(inner, item) for inner, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._value(name, item) for item in value]
        return value


@dataclass(slots=True)
class RedactedTool:
    """A tool whose results are redacted before anyone sees them."""

    tool: Tool
    redaction: Redaction
    spec: ToolSpec = field(init=False)
    kind: ToolKind = field(init=False)

    def __post_init__(self) -> None:
        self.spec, self.kind = self.tool.spec, self.tool.kind

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        return self.tool.view(arguments, context)

    async def request(self, arguments: Mapping[str, object], context: ToolContext) -> ToolRequest:
        with self._refusals():
            return await self.tool.request(arguments, context)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        with self._refusals():
            return self.redaction.outcome(await self.tool.run(arguments, context))

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """What a tool says when it fails is a result as well."""
        try:
            yield
        except ToolError as error:
            raise ToolError(self.redaction.text(error.message)) from None
