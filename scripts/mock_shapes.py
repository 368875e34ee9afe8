"""The APIs that the mock model speaks: requests to chat messages, answers in each one's frames. No I/O."""

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise

from mock_reply import Json, Reply, text_of


class Shape:
    """Chat completions, and what the others share: what a request says, how a refusal looks."""

    reply: type[Reply] = Reply

    def as_chat(self, body: Json) -> Json:
        """The request as chat completions would put it."""
        return {"messages": body.get("messages") or [], "tools": body.get("tools")}

    def fault(self, body: Json) -> str:
        """What this API alone refuses in a request; '' for nothing."""
        return ""

    def refusal(self, message: str, code: str | None = None) -> Json:
        error = {"message": message, "type": "invalid_request_error", "param": "messages", "code": code}
        return {"error": error}

    def overflow(self, count: int, limit: int) -> Json:
        text = (
            f"This model's maximum context length is {limit} tokens. However, your messages resulted in "
            f"{count} tokens. Please reduce the length of the messages."
        )
        return self.refusal(text, "context_length_exceeded")


def chat_tool(name: str, parameters: object) -> Json:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def chat_call(ident: str, name: str, arguments: str) -> Json:
    return {"id": ident, "type": "function", "function": {"name": name, "arguments": arguments}}


def event(kind: str, **more: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n".encode()


class ResponsesReply(Reply):
    """An answer of the Responses API."""

    def item(self, text: str, status: str) -> Json:
        if self.call:
            called = {"call_id": self.call["id"], **self.call["function"]}
            arguments = called["arguments"] if status == "completed" else ""
            return {"type": "function_call", "id": "fc_1", **called, "arguments": arguments, "status": status}
        content = [{"type": "output_text", "text": text, "annotations": []}] if text else []
        return {"type": "message", "id": "msg_1", "role": "assistant", "status": status, "content": content}

    def response(self, status: str, output: list[Json]) -> Json:
        sizes = {"input_tokens": self.usage["prompt_tokens"], "output_tokens": len(self.text) // 4}
        details = {"input_tokens_details": {"cached_tokens": 0}}
        head = {"id": f"resp_{self.ident}", "object": "response", "model": self.config["model"]}
        return {**head, "status": status, "error": None, "output": output, "usage": {**sizes, **details}}

    def frames(self) -> Iterator[tuple[str, bytes]]:
        yield "", event("response.created", response=self.response("in_progress", []))
        place = {"output_index": 0}
        yield "", event("response.output_item.added", **place, item=self.item("", "in_progress"))
        if self.call:
            arguments = self.call["function"]["arguments"]
            yield (
                "",
                event("response.function_call_arguments.delta", item_id="fc_1", **place, delta=arguments),
            )
        for piece in self.pieces():
            yield piece, event("response.output_text.delta", item_id="msg_1", **place, delta=piece)
        done = self.item(self.text, "completed")
        yield "", event("response.output_item.done", **place, item=done)
        yield "", event("response.completed", response=self.response("completed", [done]))

    def whole(self) -> Json:
        return self.response("completed", [self.item(self.text, "completed")])


class Responses(Shape):
    """OpenAI responses."""

    reply = ResponsesReply

    def as_chat(self, body: Json) -> Json:
        told = body.get("instructions")
        messages: list[Json] = [{"role": "system", "content": told}] if told else []
        for item in body.get("input") or []:
            if item["type"] == "function_call":
                call = chat_call(item["call_id"], item["name"], item["arguments"])
                before = messages[-1] if messages else {}
                if before.get("role") == "assistant":
                    before.setdefault("tool_calls", []).append(call)
                else:
                    messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            elif item["type"] == "function_call_output":
                messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]})
            elif item["type"] == "message":
                messages.append({"role": item["role"], "content": item["content"]})
        tools = [chat_tool(tool["name"], tool["parameters"]) for tool in body.get("tools") or []]
        return {"messages": messages, "tools": tools}


class MessagesReply(Reply):
    """An answer of Anthropic's Messages API."""

    def block(self, text: str, *, whole: bool) -> Json:
        if not self.call:
            return {"type": "text", "text": text}
        function = self.call["function"]
        given = json.loads(function["arguments"]) if whole else {}
        return {"type": "tool_use", "id": self.call["id"], "name": function["name"], "input": given}

    def message(self, content: list[Json], stop: str | None) -> Json:
        usage = {"input_tokens": self.usage["prompt_tokens"], "output_tokens": len(self.text) // 4}
        head = {"id": f"msg_{self.ident}", "type": "message", "role": "assistant"}
        return {
            **head,
            "model": self.config["model"],
            "content": content,
            "stop_reason": stop,
            "usage": usage,
        }

    @property
    def stop(self) -> str:
        return "tool_use" if self.call else "end_turn"

    def frames(self) -> Iterator[tuple[str, bytes]]:
        yield "", event("message_start", message=self.message([], None))
        yield "", event("content_block_start", index=0, content_block=self.block("", whole=False))
        if self.call:
            delta = {"type": "input_json_delta", "partial_json": self.call["function"]["arguments"]}
            yield "", event("content_block_delta", index=0, delta=delta)
        for piece in self.pieces():
            yield piece, event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
        yield "", event("content_block_stop", index=0)
        usage = {"output_tokens": len(self.text) // 4}
        yield "", event("message_delta", delta={"stop_reason": self.stop, "stop_sequence": None}, usage=usage)
        yield "", event("message_stop")

    def whole(self) -> Json:
        return self.message([self.block(self.text, whole=True)], self.stop)


class Messages(Shape):
    """Anthropic messages."""

    reply = MessagesReply

    def as_chat(self, body: Json) -> Json:
        system = text_of(body.get("system"))
        messages: list[Json] = [{"role": "system", "content": system}] if system else []
        for message in body.get("messages") or []:
            blocks = message["content"]
            if isinstance(blocks, str):
                blocks = [{"type": "text", "text": blocks}]
            messages += map(self.result, (block for block in blocks if block["type"] == "tool_result"))
            calls = [self.called(block) for block in blocks if block["type"] == "tool_use"]
            said = [block for block in blocks if block["type"] == "text"]
            if said or calls:
                more = {"tool_calls": calls} if calls else {}
                messages.append({"role": message["role"], "content": said, **more})
        tools = [chat_tool(tool["name"], tool["input_schema"]) for tool in body.get("tools") or []]
        return {"messages": messages, "tools": [] if body.get("tool_choice") else tools}

    def result(self, block: Json) -> Json:
        return {"role": "tool", "tool_call_id": block["tool_use_id"], "content": block["content"]}

    def called(self, block: Json) -> Json:
        return chat_call(block["id"], block["name"], json.dumps(block["input"]))

    def fault(self, body: Json) -> str:
        messages = body.get("messages") or []
        roles = [message["role"] for message in messages]
        blocks = [block for message in messages for block in message["content"]]
        kinds = [[block["type"] for block in message["content"]] for message in messages]
        marks = json.dumps(body).count('"cache_control"')
        faults = {
            "max_tokens: Field required": not body.get("max_tokens"),
            "first message must use the user role": roles[:1] != ["user"],
            "roles must alternate": any(a == b for a, b in pairwise(roles)),
            "text content blocks must be non-empty": any(not b.get("text", "x").strip() for b in blocks),
            "messages must not be empty": not all(kinds),
            "tool_result blocks must come first": any(
                "tool_result" in found[found.index("text") :] for found in kinds if "text" in found
            ),
            "tools must be defined": not body.get("tools") and any("tool_use" in found for found in kinds),
            "at most 4 blocks with cache_control": marks > 4,
        }
        return next((text for text, holds in faults.items() if holds), "")

    def refusal(self, message: str, code: str | None = None) -> Json:
        return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}

    def overflow(self, count: int, limit: int) -> Json:
        return self.refusal(f"prompt is too long: {count} tokens > {limit} maximum")


SHAPES: Mapping[str, Shape] = {
    "/chat/completions": Shape(),
    "/responses": Responses(),
    "/messages": Messages(),
}
"""The end of a path -> what is spoken there."""
