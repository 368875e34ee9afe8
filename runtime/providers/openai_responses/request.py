"""A request as the bytes of a Responses API body: pure. Knows no HTTP.

A head with all that stays the same (model, options, tools, instructions), then the input items as kept on
their segments; the output limit, which may shrink, stands at the end. Nothing is stored at the provider, so
each request carries all of it, and reasoning goes to and fro encrypted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from runtime.providers.http.encoding import (
    dumps,
    filled,
    fitting_id,
    fitting_name,
    is_blank,
    raw,
    safe_arguments,
    unsent_image,
)
from runtime.providers.http.reasoning import Piece, pieces
from runtime.values.model import ModelRequest, Segment
from runtime.values.rows import Image, Row, ToolCall, ToolSpec
from runtime.values.texts import mended

CODEC = "openai-responses"
"""The key in `Segment.encoded`; the system rows' text stands under SYSTEM."""
SYSTEM = CODEC + "-system"
REASONING = frozenset({"reasoning"})
"""Kinds of items that the API wants back as they came."""
OWN_MEMBERS = frozenset(
    {"model", "input", "instructions", "stream", "store", "include", "tools", "max_output_tokens"}
)
"""Members of the body that no option may set."""
UNREASONING = ("gpt-3.5", "gpt-4", "gpt-5-chat", "chatgpt-")
"""Beginnings of model names that refuse to be asked for encrypted reasoning, as they have none."""


@dataclass(frozen=True, slots=True)
class BodyShape:
    """What the settings say of the body. encrypted_reasoning: ask for it; None: as the model's name tells.

    extra: more members, as they shall appear.
    """

    encrypted_reasoning: bool | None = None
    extra: Mapping[str, object] | None = None


class BodyWriter:
    """Writes bodies of one shape and keeps the head of the last one."""

    def __init__(self, shape: BodyShape) -> None:
        self._head = lru_cache(maxsize=1)(partial(_head, shape))

    def body(self, request: ModelRequest) -> bytes:
        """The body. Rows of a segment that was sent before are not encoded again."""
        head = self._head(request.model, request.tools, instructions(request.segments))
        rows = b",".join(filter(None, map(encoded, request.segments)))
        limit = request.max_output_tokens
        tail = b"" if limit is None else b',"max_output_tokens":%d' % limit
        return b"%b%b]%b}" % (head, rows, tail)


def _head(shape: BodyShape, model: str, tools: tuple[ToolSpec, ...], told: str) -> bytes:
    wanted = shape.encrypted_reasoning
    if wanted is None:
        # Gateways put the maker's name before the model's.
        wanted = not model.rpartition("/")[2].startswith(UNREASONING)
    head: dict[str, object] = {"model": model, "stream": True, "store": False}
    if wanted:
        head["include"] = ["reasoning.encrypted_content"]
    head.update(shape.extra or {})
    if tools:
        head["tools"] = list(map(_tool, tools))
    if told:
        head["instructions"] = told
    return dumps(head)[:-1] + b',"input":['


def _tool(tool: ToolSpec) -> dict[str, object]:
    return {
        "type": "function",
        "name": fitting_name(tool.name),
        "description": tool.description,
        "parameters": raw(tool.parameters),
        "strict": False,
    }


def instructions(segments: Sequence[Segment]) -> str:
    """The text of all system rows."""
    return b"\n\n".join(filter(None, map(_system, segments))).decode()


def _system(segment: Segment) -> bytes:
    known = segment.encoded.get(SYSTEM)
    if known is None:
        texts = [row.content for row in segment.rows if row.role == "system" and not is_blank(row.content)]
        known = segment.encoded[SYSTEM] = mended("\n\n".join(texts)).encode()
    return known


def encoded(segment: Segment) -> bytes:
    """The segment's rows as items with commas between them, made on first use."""
    known = segment.encoded.get(CODEC)
    if known is None:
        known = b",".join(dumps(item) for row in segment.rows for item in items(row))
        segment.encoded[CODEC] = known
    return known


def items(row: Row) -> list[dict[str, object]]:
    """The row's items: none for a system row, else one at least."""
    match row.role:
        case "system":
            return []
        case "tool":
            ident = fitting_id(row.tool_call_id or "")
            return [{"type": "function_call_output", "call_id": ident, "output": filled(row.content)}]
        case "assistant":
            made = [_item(piece) for piece in pieces(row, REASONING) if not _says_nothing(piece)]
            return made or [_said(row.content)]
        case "user":
            return [{"type": "message", "role": "user", "content": _content(row)}]


def _says_nothing(piece: Piece) -> bool:
    return isinstance(piece, str) and is_blank(piece)


def _item(piece: Piece) -> dict[str, object]:
    if isinstance(piece, str):
        return _said(piece)
    return _call(piece) if isinstance(piece, ToolCall) else piece


def _said(text: str) -> dict[str, object]:
    content = [{"type": "output_text", "text": filled(text)}]
    return {"type": "message", "role": "assistant", "content": content}


def _call(call: ToolCall) -> dict[str, object]:
    return {
        "type": "function_call",
        "call_id": fitting_id(call.id),
        "name": fitting_name(call.name),
        "arguments": safe_arguments(call.arguments),
    }


def _content(row: Row) -> str | list[dict[str, object]]:
    if not row.images:
        return filled(row.content)
    said = [] if is_blank(row.content) else [_input_text(row.content)]
    return said + [_image(image) for image in row.images]


def _input_text(text: str) -> dict[str, object]:
    return {"type": "input_text", "text": text}


def _image(image: Image) -> dict[str, object]:
    url = f"data:{image.mime_type};base64,{image.data}" if image.data else image.uri
    if url.startswith(("http://", "https://", "data:")):
        return {"type": "input_image", "image_url": url}
    return _input_text(unsent_image(url))
