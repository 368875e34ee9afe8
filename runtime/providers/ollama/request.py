"""A request as the bytes of Ollama's chat body: pure. Knows no HTTP.

The window goes along as `num_ctx`: without it the server takes what it thinks the machine can hold, and cuts
what is longer without a word. `truncate` and `shift` are switched off, so that a newer server refuses it
instead, and ends an answer that fills the window as one that was too long.

A head with all that stays the same, each segment's rows as cached on it, and the options, whose output limit
may shrink, at the end. An empty system row is left out. What is sent for empty text and broken arguments:
`encoding`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial

from runtime.providers.http.encoding import (
    data_uri,
    dumps,
    filled,
    is_blank,
    raw,
    safe_arguments,
    unsent_image,
)
from runtime.providers.http.reasoning import thought_of
from runtime.providers.ollama.events import THINKING
from runtime.values.model import ModelRequest, Segment
from runtime.values.rows import Image, Row, ToolCall, ToolSpec

CODEC = "ollama-chat"
"""The key in `Segment.encoded`."""
OWN_MEMBERS = frozenset({"model", "messages", "stream", "tools", "truncate", "shift", "think", "keep_alive"})
"""Members of the body that `extra_body` may not set."""
OWN_OPTIONS = {"num_ctx": "context_window", "num_predict": "max_output_tokens"}
"""Options of the body that it may not set either -> the key of the section that does."""


@dataclass(frozen=True, slots=True)
class BodyShape:
    """What the settings say of the body.

    window: tokens of `model`, 0 when not known. members: more of the body; options: more of its options.
    """

    model: str = ""
    window: int = 0
    members: Mapping[str, object] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)

    def window_of(self, model: str) -> int:
        """The window of a model, 0 when it is not known: one is never lent to another model."""
        return self.window if model == self.model or not self.model else 0


class BodyWriter:
    """Writes bodies of one shape and keeps the head of the last one."""

    def __init__(self, shape: BodyShape) -> None:
        self._shape = shape
        self._head = lru_cache(maxsize=1)(partial(_head, shape))

    def body(self, request: ModelRequest) -> bytes:
        """The body. Rows of a segment that was sent before are not encoded again."""
        head = self._head(request.model, request.tools)
        messages = b",".join(filter(None, map(encoded, request.segments)))
        return b"%b%b]%b}" % (head, messages, self._tail(request))

    def _tail(self, request: ModelRequest) -> bytes:
        options = dict(self._shape.options)
        window = self._shape.window_of(request.model)
        if window:
            options["num_ctx"] = window
        if request.max_output_tokens is not None:
            options["num_predict"] = request.max_output_tokens
        return b',"options":%b' % dumps(options) if options else b""


def _head(shape: BodyShape, model: str, tools: tuple[ToolSpec, ...]) -> bytes:
    members: dict[str, object] = {"model": model, "stream": True, "truncate": False, "shift": False}
    head = dumps(members | dict(shape.members))[:-1]
    if tools:
        head += b',"tools":[%b]' % b",".join(map(_tool, tools))
    return head + b',"messages":['


def _tool(tool: ToolSpec) -> bytes:
    function = {"name": tool.name, "description": tool.description, "parameters": raw(tool.parameters)}
    return dumps({"type": "function", "function": function})


def encoded(segment: Segment) -> bytes:
    """The segment's rows as JSON objects with commas between them, made on first use."""
    known = segment.encoded.get(CODEC)
    if known is None:
        known = b",".join(dumps(message) for message in messages(segment.rows))
        segment.encoded[CODEC] = known
    return known


def messages(rows: Sequence[Row]) -> list[dict[str, object]]:
    """Rows as message objects. A result is told with its tool's name, which some models go by."""
    made = []
    names: dict[str, str] = {}
    for row in rows:
        names |= {call.id: call.name for call in row.tool_calls}
        if row.role != "system" or not is_blank(row.content):
            made.append(_message(row, names.get(row.tool_call_id or "", "")))
    return made


def _message(row: Row, tool_name: str) -> dict[str, object]:
    match row.role:
        case "tool":
            named = {"tool_name": tool_name} if tool_name else {}
            ident = {"tool_call_id": row.tool_call_id or ""}
            return {"role": "tool", "content": filled(row.content), **named, **ident}
        case "assistant":
            return _reply(row)
        case "user":
            return _prompt(row)
        case _:
            return {"role": row.role, "content": row.content}


def _reply(row: Row) -> dict[str, object]:
    if not row.tool_calls:
        return {"role": "assistant", "content": filled(row.content)}
    content = "" if is_blank(row.content) else row.content
    calls = list(map(_call, row.tool_calls))
    return {"role": "assistant", "content": content, **thought_of(row, THINKING), "tool_calls": calls}


def _call(call: ToolCall) -> dict[str, object]:
    function = {"name": call.name, "arguments": raw(safe_arguments(call.arguments))}
    return {"id": call.id, "type": "function", "function": function}


def _prompt(row: Row) -> dict[str, object]:
    loaded = [_base64(image) for image in row.images]
    unsent = [unsent_image(image.uri) for image, data in zip(row.images, loaded, strict=True) if not data]
    text = "\n\n".join([row.content, *unsent] if not is_blank(row.content) else unsent)
    images = list(filter(None, loaded))
    if not images:
        return {"role": "user", "content": filled(text)}
    return {"role": "user", "content": text, "images": images}


def _base64(image: Image) -> str:
    """The picture as the API takes it; '' for an address, which it does not load."""
    if image.data:
        return image.data
    inside = data_uri(image.uri)
    return inside[1] if inside else ""
