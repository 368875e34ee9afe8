"""A request as the bytes of a chat completions body: pure. Knows no HTTP.

The body is put together from bytes that are made once: a head with all that stays the same (model,
options, tools), then each segment's rows as cached on the segment. What one request sent, the next
one starts with, byte for byte; the output limit, which may shrink, stands at the end.

Neighbouring user texts are sent as one message. An empty system row is left out; an assistant row with
calls and no text has content null. A thought that came with calls goes back with them, under the name that it
came under, as some servers insist. What is sent for empty text and broken arguments: `encoding`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import orjson

from runtime.history.request.digest import shared_start
from runtime.providers.http.encoding import dumps, filled, is_blank, safe_arguments, unsent_image
from runtime.providers.http.reasoning import thought_of
from runtime.providers.openai_chat.events import REASONING
from runtime.values.model import ModelRequest, Segment
from runtime.values.rows import Image, Row, ToolCall, ToolSpec

CODEC = "openai-chat"
"""The key in `Segment.encoded`."""
USER_HEAD, USER_GAP, USER_TAIL = b'{"role":"user","content":"', b"\\n\\n", b'"}'
"""How a user row's message begins and ends, and what stands between two texts that became one."""
OWN_MEMBERS = frozenset({"model", "messages", "stream", "stream_options", "tools"})
"""Members of the body that no option may set."""


@dataclass(frozen=True, slots=True)
class BodyShape:
    """What the settings say of the body. extra: more members, as they shall appear."""

    output_limit_key: str = "max_tokens"
    stream_usage: bool = True
    extra: Mapping[str, object] | None = None


class BodyWriter:
    """Writes bodies of one shape; what the last one began with is not put together again."""

    def __init__(self, shape: BodyShape) -> None:
        self._shape = shape
        self._rows = MessageBytes()
        self._head = lru_cache(maxsize=1)(partial(_head, shape))

    def body(self, request: ModelRequest) -> bytes:
        """The body. Rows of a segment that was sent before are not encoded again."""
        head, rows = self._head(request.model, request.tools), self._rows.of(request.segments)
        return b"%b%b]%b}" % (head, rows, self._tail(request.max_output_tokens))

    def _tail(self, max_output_tokens: int | None) -> bytes:
        if max_output_tokens is None:
            return b""
        return b",%b:%d" % (orjson.dumps(self._shape.output_limit_key), max_output_tokens)


def _head(shape: BodyShape, model: str, tools: tuple[ToolSpec, ...]) -> bytes:
    members: dict[str, object] = {"model": model, "stream": True}
    if shape.stream_usage:
        members["stream_options"] = {"include_usage": True}
    members.update(shape.extra or {})
    head = dumps(members)[:-1]
    if tools:
        head += b',"tools":[%b]' % b",".join(map(_tool, tools))
    return head + b',"messages":['


def _tool(tool: ToolSpec) -> bytes:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": orjson.Fragment(tool.parameters),
    }
    return dumps({"type": "function", "function": function})


def encoded(segment: Segment) -> bytes:
    """The segment's rows as JSON objects with commas between them, made on first use."""
    known = segment.encoded.get(CODEC)
    if known is None:
        known = joined((dumps(message(row)), row, row) for row in sent_rows(segment)).data
        segment.encoded[CODEC] = known
    return known


class MessageBytes:
    """The rows of requests, from their segments' cached bytes. A request that goes on where the one before
    ended costs what is new in it.
    """

    def __init__(self) -> None:
        self._segments: tuple[Segment, ...] = ()
        self._sent = Joined()

    def of(self, segments: tuple[Segment, ...]) -> bytes:
        """The rows of all segments, with commas between them."""
        known = shared_start(self._segments, segments)
        if known < len(self._segments):
            self._sent, known = Joined(), 0
        new = ((segment, sent_rows(segment)) for segment in segments[known:])
        self._sent = joined(
            ((encoded(segment), rows[0], rows[-1]) for segment, rows in new if rows), self._sent
        )
        self._segments = segments
        return self._sent.data


def sent_rows(segment: Segment) -> Sequence[Row]:
    """The segment's rows without empty system rows. Only a segment of system rows begins with one."""
    rows = segment.rows
    if not rows or rows[0].role != "system":
        return rows
    return [row for row in rows if not _left_out(row)]


class Joined(NamedTuple):
    """Rows as bytes, and the last of them; None without any."""

    data: bytes = b""
    last: Row | None = None


NOTHING = Joined()


def joined(pieces: Iterable[tuple[bytes, Row, Row]], start: Joined = NOTHING) -> Joined:
    """Pieces (bytes, first row, last row) behind a start, with commas between them; where two user texts
    meet, one message.

    Many models' templates refuse two user messages in a row, and the breadcrumb stands before a prompt.
    """
    before = start.last
    made = [] if before is None else [start.data]
    for data, first, last in pieces:
        if before is not None and _is_text(before) and _is_text(first):
            made[-1] = made[-1][: -len(USER_TAIL)]
            made += [USER_GAP, data[len(USER_HEAD) :]]
        else:
            made += [b",", data] if made else [data]
        before = last
    return Joined(b"".join(made), before)


def _is_text(row: Row) -> bool:
    return row.role == "user" and not row.images


def _left_out(row: Row) -> bool:
    return row.role == "system" and is_blank(row.content)


def message(row: Row) -> dict[str, object]:
    """The row as a message object."""
    if row.role == "assistant" and row.tool_calls:
        content = None if is_blank(row.content) else row.content
        calls = [_call(c) for c in row.tool_calls]
        return {"role": "assistant", "content": content, **thought_of(row, REASONING), "tool_calls": calls}
    if row.role == "tool":
        return {"role": "tool", "tool_call_id": row.tool_call_id or "", "content": filled(row.content)}
    if row.role == "user" and row.images:
        return {"role": "user", "content": _blocks(row)}
    return {"role": row.role, "content": filled(row.content)}


def _call(call: ToolCall) -> dict[str, object]:
    function = {"name": call.name, "arguments": safe_arguments(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _blocks(row: Row) -> list[dict[str, object]]:
    text: list[dict[str, object]] = [] if is_blank(row.content) else [{"type": "text", "text": row.content}]
    return text + [_image(image) for image in row.images]


def _image(image: Image) -> dict[str, object]:
    if image.data:
        return {"type": "image_url", "image_url": {"url": f"data:{image.mime_type};base64,{image.data}"}}
    if image.uri.startswith(("http://", "https://", "data:")):
        return {"type": "image_url", "image_url": {"url": image.uri}}
    # No server can load a file of this machine; the model should know that there was one.
    return {"type": "text", "text": unsent_image(image.uri)}
