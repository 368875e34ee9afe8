"""Tool calls written in text, for models without native ones: how they are told, what they wrote. Pure.

Such a model writes `<tool_call>{"name": …, "arguments": …}</tool_call>` into its answer and finds the
results in one user row that starts with `[Tool results]`. Runs nothing and knows no tool.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from runtime.history.rows.boundaries import TOOL_RESULTS_PREFIX
from runtime.values.rows import ToolSpec

_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_OPEN = "<tool_call>"


@dataclass(frozen=True, slots=True)
class PromptCall:
    """A call found in text. `arguments` is compact JSON, '{}' when none were given."""

    name: str
    arguments: str


def prompt_mode_calls(text: str) -> list[PromptCall]:
    """The well-formed `<tool_call>{"name", "arguments"}</tool_call>` of a text, in order.

    JSON outside the tags is text; a tag whose content is not such an object is left out.
    """
    if _OPEN not in text:
        return []
    return [call for match in _CALL.finditer(text) if (call := _call(match[1])) is not None]


def _call(body: str) -> PromptCall | None:
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    name = value.get("name") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(name, str) or not name:
        return None
    arguments = value.get("arguments", {})
    if isinstance(arguments, str):
        return PromptCall(name, arguments)
    return PromptCall(name, json.dumps(arguments, ensure_ascii=False, separators=(",", ":")))


OPEN, CLOSE = "<tool_call>", "</tool_call>"
PARSE_ERROR = (
    "[Tool call parse error] A tool call must be {open}JSON{close} with a JSON object that has "
    '"name" and "arguments". {count} could not be read. Write it again.'
)
HEAD = """\
You can use tools. To use one, write exactly one line per call, and nothing after it:
<tool_call>{"name": "TOOL", "arguments": {…}}</tool_call>
The results come in the next message, which starts with [Tool results]. Do not write results yourself.
The tools, each with the JSON schema of its arguments:"""

_BLOCK = re.compile(re.escape(OPEN) + ".*?" + re.escape(CLOSE), re.DOTALL)


def instructions(specs: Sequence[ToolSpec]) -> str:
    """The system text that tells a model of its tools; '' without tools."""
    if not specs:
        return ""
    return "\n".join([HEAD, *(f"- {spec.name}: {spec.description} {spec.parameters}" for spec in specs)])


def results_text(results: Sequence[tuple[str, str]]) -> str:
    """The user row that carries results. results: (tool name, text), in the order of the calls."""
    blocks = [f'<tool_result name="{name}">\n{text}\n</tool_result>' for name, text in results]
    return "\n".join([TOOL_RESULTS_PREFIX, *blocks])


def unreadable_calls(text: str) -> int:
    """How many closed tags hold no call."""
    return len(_BLOCK.findall(text)) - len(prompt_mode_calls(text))


def parse_error(count: int) -> str:
    """The row that tells the model that its calls could not be read."""
    return PARSE_ERROR.format(open=OPEN, close=CLOSE, count=count)


def visible_text(text: str) -> str:
    """The text as the person sees it: without the tags and what is in them."""
    shown = TagFilter()
    return shown.feed(text) + shown.finish()


@dataclass(slots=True)
class TagFilter:
    """Takes text in pieces, gives back what is outside the tags, as early as that can be known."""

    held: str = ""
    inside: bool = False

    def feed(self, piece: str) -> str:
        """The part that can be shown now."""
        self.held += piece
        shown = ""
        while True:
            tag = CLOSE if self.inside else OPEN
            before, found, after = self.held.partition(tag)
            if not found:
                break
            shown += "" if self.inside else before
            self.held, self.inside = after, not self.inside
        if self.inside:
            return shown
        keep = tail_of(self.held, OPEN)
        shown += self.held[: len(self.held) - keep]
        self.held = self.held[len(self.held) - keep :]
        return shown

    def finish(self) -> str:
        """What was held back and turned out to be text. A tag that was never closed stays hidden."""
        rest, self.held = ("" if self.inside else self.held), ""
        return rest


def tail_of(text: str, tag: str) -> int:
    """How many characters at the end could be the beginning of the tag."""
    for length in range(min(len(tag) - 1, len(text)), 0, -1):
        if text.endswith(tag[:length]):
            return length
    return 0
