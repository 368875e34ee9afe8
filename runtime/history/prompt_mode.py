"""Tool calls written in text, for models without native ones. Runs nothing and knows no tool."""

import json
import re
from dataclasses import dataclass

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
