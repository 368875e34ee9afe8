"""One answer of the mock model: what it says, and its frames on an OpenAI chat completions stream. No I/O."""

import json
import re
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]


def tokens(value: object) -> int:
    """A rough count, four characters of JSON to a token."""
    return len(json.dumps(value, ensure_ascii=False)) // 4


def text_of(content: object) -> str:
    """The text of a message's content, which is a string or a list of parts."""
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def turn_of(messages: list[Json]) -> int:
    """The number in the newest user message that carries one; 0 without."""
    for message in reversed(messages):
        marks = re.findall(r"TURN-(\d+)", text_of(message.get("content")))
        if message.get("role") == "user" and marks:
            return int(marks[-1])
    return 0


def pairs(messages: list[Json]) -> str:
    """'ok', or what is wrong between the tool calls and their results."""
    unanswered: list[str] = []
    for message in messages:
        if message.get("role") == "tool":
            ident = message.get("tool_call_id", "")
            if ident not in unanswered:
                return f"result without call: {ident}"
            unanswered.remove(ident)
        elif unanswered:
            break
        unanswered += [call["id"] for call in message.get("tool_calls") or []]
    return f"call without result: {unanswered[0]}" if unanswered else "ok"


def arguments_for(tool: Json, path: str) -> Json:
    """Arguments that satisfy the tool's schema and make it read `path`."""
    schema = tool["function"].get("parameters") or {}
    properties = schema.get("properties") or {}
    named = {name for name in properties if re.search("path|file|uri", name.lower())}
    wanted = schema.get("required") or sorted(named) or list(properties)[:1]
    return {name: path if name in named else 1 for name in wanted}


class Reply:
    """One answer: text or a call, as frames of a stream or as one object."""

    content_type = "text/event-stream"
    nonsense = b"data: {no json\n\n"

    def __init__(self, config: Json, ident: str, text: str, call: Json | None, prompt_tokens: int) -> None:
        self.config, self.ident, self.text, self.call = config, ident, text, call
        self.usage = {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": len(text) // 4,
            "total_tokens": prompt_tokens + len(text) // 4,
        }
        self.finish = "tool_calls" if call else "stop"

    def frame(self, delta: Json, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return self.event({"choices": [choice]})

    def event(self, more: Json) -> bytes:
        head = {"id": self.ident, "object": "chat.completion.chunk", "created": 1}
        return f"data: {json.dumps(head | {'model': self.config['model']} | more)}\n\n".encode()

    def pieces(self) -> list[str]:
        size = max(1, -(-len(self.text) // max(1, self.config["chunks"])))
        return [self.text[i : i + size] for i in range(0, len(self.text), size)]

    def frames(self) -> Iterator[tuple[str, bytes]]:
        """(text that the frame carries, its bytes)."""
        yield "", self.frame({"role": "assistant", "content": ""})
        if self.call:
            function = self.call["function"]
            named = {**self.call, "index": 0, "function": {**function, "arguments": ""}}
            yield "", self.frame({"tool_calls": [named]})
            rest = {"index": 0, "function": {"arguments": function["arguments"]}}
            yield "", self.frame({"tool_calls": [rest]})
        for piece in self.pieces():
            yield piece, self.frame({"content": piece})
        yield "", self.frame({}, self.finish)
        yield "", self.event({"choices": [], "usage": self.usage})
        yield "", b"data: [DONE]\n\n"

    def whole(self) -> Json:
        message: Json = {"role": "assistant", "content": self.text or None}
        if self.call:
            message["tool_calls"] = [self.call]
        choice = {"index": 0, "message": message, "finish_reason": self.finish}
        return {
            "id": self.ident,
            "object": "chat.completion",
            "created": 1,
            "model": self.config["model"],
            "choices": [choice],
            "usage": self.usage,
        }
