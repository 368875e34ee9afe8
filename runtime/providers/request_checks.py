"""What a strict provider refuses, and how large it counts a request: pure. For the scripted provider."""

from collections.abc import Sequence

from runtime.model import (
    ModelRequest,
)
from runtime.rows import Row

IMAGE_TOKENS = 1600


def broken_pair(rows: Sequence[Row]) -> str:
    """What is wrong between tool calls and their results, '' when nothing is.

    Strict: the results of a call row stand directly after it, each call answered exactly once.
    """
    waiting: list[str] = []
    for row in rows:
        if row.role == "tool":
            if row.tool_call_id not in waiting:
                return f"result without call: {row.tool_call_id}"
            waiting.remove(row.tool_call_id)
            continue
        if waiting:
            break
        waiting = [call.id for call in row.tool_calls]
        if len(set(waiting)) != len(waiting):
            return "two calls of one row have the same id"
    return f"call without result: {waiting[0]}" if waiting else ""


def request_size(request: ModelRequest) -> int:
    """Tokens as a server without a vocabulary would count them: bytes / 4 and 4 a row."""
    rows = sum(map(_row_size, request.rows()))
    return rows + sum(_tokens(tool.name + tool.description + tool.parameters) + 4 for tool in request.tools)


def _row_size(row: Row) -> int:
    calls = "".join(call.id + call.name + call.arguments for call in row.tool_calls)
    return _tokens(row.content + calls) + 4 + IMAGE_TOKENS * len(row.images)


def _tokens(text: str) -> int:
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)
