"""Ollama's own chat API as the mock model speaks it: lines in place of events, calls whole. No I/O."""

import json
from collections.abc import Iterator

from mock_reply import Json, Reply
from mock_shapes import Shape, chat_call


def line(**members: object) -> bytes:
    return (
        json.dumps({"model": "mock-model", "created_at": "2026-01-05T10:00:00Z", **members}).encode() + b"\n"
    )


class OllamaReply(Reply):
    """An answer of Ollama's chat API."""

    content_type = "application/x-ndjson"
    nonsense = b"{no json\n"

    def message(self, text: str) -> Json:
        if not self.call:
            return {"role": "assistant", "content": text}
        function = self.call["function"]
        called = {"function": {"name": function["name"], "arguments": self.given(function["arguments"])}}
        return {"role": "assistant", "content": text, "tool_calls": [called]}

    def given(self, arguments: str) -> object:
        """An object, or the text where the arguments are broken."""
        try:
            value: object = json.loads(arguments)
        except ValueError:
            return arguments
        return value

    def end(self) -> Json:
        sizes = {"prompt_eval_count": self.usage["prompt_tokens"], "eval_count": len(self.text) // 4}
        return {"done": True, "done_reason": "stop", **sizes}

    def frames(self) -> Iterator[tuple[str, bytes]]:
        if self.call:
            yield "", line(message=self.message(""), done=False)
        for piece in self.pieces():
            yield piece, line(message={"role": "assistant", "content": piece}, done=False)
        yield "", line(message={"role": "assistant", "content": ""}, **self.end())

    def whole(self) -> Json:
        return {"model": "mock-model", "message": self.message(self.text), **self.end()}


class Ollama(Shape):
    """Ollama's chat API."""

    reply = OllamaReply

    def as_chat(self, body: Json) -> Json:
        return {"messages": list(map(self.said, body.get("messages") or [])), "tools": body.get("tools")}

    def said(self, message: Json) -> Json:
        calls = [
            chat_call(call.get("id", ""), call["function"]["name"], json.dumps(call["function"]["arguments"]))
            for call in message.get("tool_calls") or []
        ]
        return {**message, **({"tool_calls": calls} if calls else {})}

    def fault(self, body: Json) -> str:
        functions = [
            call["function"]
            for message in body.get("messages") or []
            for call in message.get("tool_calls") or []
        ]
        faults = {
            "truncate and shift must be off": body.get("truncate") is not False
            or body.get("shift") is not False,
            "arguments must be an object": any(not isinstance(one["arguments"], dict) for one in functions),
        }
        return next((text for text, holds in faults.items() if holds), "")

    def refusal(self, message: str, code: str | None = None) -> Json:
        return {"error": message}

    def overflow(self, count: int, limit: int) -> Json:
        """The error of the runner behind it, as text."""
        error = {
            "code": 400,
            "message": f"request ({count} tokens) exceeds the available context size ({limit} tokens)",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": count,
            "n_ctx": limit,
        }
        return self.refusal(json.dumps({"error": error}))
