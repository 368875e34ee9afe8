"""For models that know no tools: requests guided by a schema, and the one JSON object of a reply made parts.

The object is `{"answer": TEXT}` or `{"tool": NAME, "arguments": {…}}`; llama.cpp lets the model write nothing
else. What was said before is shown to the model in the same form, and results come in a user row, as with
`tools = "prompt"`. Pure; knows no server.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import orjson

from runtime.history.rows.calls_in_text import results_text
from runtime.providers.errors.failures import Peer
from runtime.providers.http.decoding import Object, PartSink, table, text
from runtime.providers.http.encoding import dumps, is_blank, json_text, raw, safe_arguments, unsent_image
from runtime.providers.openai_chat.events import ChatDecoder
from runtime.values.model import CallPart, CallStartPart, ModelRequest, Segment, TextPart, ThoughtPart
from runtime.values.rows import Image, Row, ToolCall, ToolSpec

HEAD = """\
Reply with one JSON object and nothing else.
To answer: {"answer": "TEXT"}
To use a tool: {"tool": "NAME", "arguments": {…}}
Tools, each with the JSON schema of its arguments:"""
KEYWORDS = ("type", "enum", "const", "required")
"""Of a tool's schema, besides those that nest: all others are the tool's own to check."""
ANY_OBJECT: Mapping[str, object] = {"type": "object"}


def is_guided(request: ModelRequest) -> bool:
    """Whether tools are offered or were used: anything else is a plain conversation."""
    return bool(request.tools) or any(row.tool_calls or row.role == "tool" for row in request.rows())


def plain_rows(request: ModelRequest) -> ModelRequest:
    """The request with one system row at most, as some templates take no second one, and without pictures."""
    return _with_segments(request, [_without_images(segment) for segment in request.segments], "")


def guided_rows(request: ModelRequest) -> ModelRequest:
    """The request without native tools: instructions, calls and results are text."""
    names = {call.id: call.name for row in request.rows() for call in row.tool_calls}
    segments = [
        Segment(tuple(_told(_without_images(segment).rows, names))) if _has_replies(segment) else segment
        for segment in request.segments
    ]
    return replace(_with_segments(request, segments, instructions(request.tools)), tools=())


def instructions(tools: Sequence[ToolSpec]) -> str:
    """The system text that tells of the tools; '' without any."""
    if not tools:
        return ""
    return "\n".join([HEAD, *(f"- {tool.name}: {tool.description} {tool.parameters}" for tool in tools)])


def reply_schema(tools: Sequence[ToolSpec]) -> dict[str, object]:
    """The JSON schema of a reply: an answer, or a call of one of these tools."""
    answer = _closed({"answer": {"type": "string"}})
    calls = [
        _closed({"tool": {"const": tool.name}, "arguments": arguments_schema(tool.parameters)})
        for tool in tools
    ]
    return {"anyOf": [answer, *calls]} if calls else answer


def arguments_schema(parameters: str) -> Mapping[str, object]:
    """What a grammar can be made of in a tool's schema: a reference or a pattern would fail the request."""
    try:
        schema = orjson.loads(parameters)
    except orjson.JSONDecodeError:
        return ANY_OBJECT
    kept = _kept(schema)
    return kept if kept.get("type") == "object" else ANY_OBJECT


def _closed(properties: Mapping[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _kept(schema: object) -> dict[str, object]:
    if not isinstance(schema, dict):
        return {}
    kept: dict[str, object] = {word: schema[word] for word in KEYWORDS if word in schema}
    properties = schema.get("properties")
    if isinstance(properties, dict):
        kept["properties"] = {name: _kept(inner) for name, inner in properties.items()}
        kept["additionalProperties"] = False
    if isinstance(schema.get("items"), dict):
        kept["items"] = _kept(schema["items"])
    for word in ("anyOf", "oneOf"):
        if isinstance(schema.get(word), list):
            kept["anyOf"] = [_kept(inner) for inner in schema[word]]
    return kept


def _with_segments(request: ModelRequest, segments: Sequence[Segment], more: str) -> ModelRequest:
    """The leading system rows of all segments as one row, with more text at its end, then the rest."""
    system: list[str] = []
    rest: list[Segment] = []
    for segment in segments:
        rows = segment.rows
        while not rest and rows and rows[0].role == "system":
            system.append(rows[0].content)
            rows = rows[1:]
        if rows:
            rest.append(segment if rows is segment.rows else Segment(rows))
    text = "\n\n".join(part for part in (*system, more) if not is_blank(part))
    head = [Segment((Row("system", text),))] if text else []
    return replace(request, segments=(*head, *rest))


def _has_replies(segment: Segment) -> bool:
    return any(row.role in ("assistant", "tool") or row.images for row in segment.rows)


def _told(rows: Sequence[Row], names: Mapping[str, str]) -> Iterator[Row]:
    results: list[tuple[str, str]] = []
    for row in rows:
        if row.role == "tool":
            results.append((names.get(row.tool_call_id or "", "unknown"), row.content))
            continue
        if results:
            yield Row("user", results_text(results), origin="runtime")
            results = []
        yield Row("assistant", _reply(row)) if row.role == "assistant" else row
    if results:
        yield Row("user", results_text(results), origin="runtime")


def _reply(row: Row) -> str:
    """The reply as the model would have had to write it."""
    calls = [
        dumps({"tool": call.name, "arguments": raw(safe_arguments(call.arguments))})
        for call in row.tool_calls
    ]
    said = [] if calls and is_blank(row.content) else [dumps({"answer": row.content})]
    return b"\n".join([*said, *calls]).decode()


def _without_images(segment: Segment) -> Segment:
    if not any(row.images for row in segment.rows):
        return segment
    return Segment(tuple(_described(row) if row.images else row for row in segment.rows))


def _described(row: Row) -> Row:
    lines = [row.content, *(unsent_image(_name(image)) for image in row.images)]
    return replace(row, content="\n".join(line for line in lines if line), images=())


def _name(image: Image) -> str:
    return image.uri if image.uri and not image.uri.startswith("data:") else image.mime_type


_ANSWER = re.compile(r'\s*\{\s*"answer"\s*:\s*"')
_TOOL = re.compile(r'\s*\{\s*"tool"\s*:\s*"((?:[^"\\]|\\.)*)"')
_PIECES = re.compile(
    r"""(?: [^"\\]+
          | \\["\\/bfnrt]
          | \\u(?:[0-9a-cA-Ce-fE-F][0-9a-fA-F]{3} | [dD][0-7c-fC-F][0-9a-fA-F]{2})
          | \\u[dD][89abAB][0-9a-fA-F]{2} (?: \\u[0-9a-fA-F]{4} | (?=[^\\]) | (?=\\[^u]) )
        )*""",
    re.VERBOSE,
)
"""The part of a JSON string's inside that is complete: no half of an escape, no half of a pair."""


class GuidedReader:
    """One reply. `feed` gives what can be shown at once: the answer's text, the name of a call."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._held = ""
        self._mode: Callable[[str, PartSink], None] = self._begin
        self._call_id = ""

    def feed(self, piece: str, sink: PartSink) -> None:
        """A piece of the object's text."""
        self._mode(piece, sink)

    def finish(self) -> list[CallPart]:
        """The call, if it is one and complete."""
        if not self._call_id:
            return []
        try:
            reply = table(orjson.loads(self._held))
        except orjson.JSONDecodeError:
            return []
        arguments = json_text(reply.get("arguments", {}))
        return [CallPart(0, ToolCall(self._call_id, text(reply.get("tool")), arguments))]

    def _begin(self, piece: str, sink: PartSink) -> None:
        self._held += piece
        answer, tool = _ANSWER.match(self._held), _TOOL.match(self._held)
        if answer:
            held, self._held = self._held[answer.end() :], ""
            self._mode = self._answer
            self._answer(held, sink)
        elif tool:
            self._call_id, self._mode = self._new_id(), self._rest
            sink.add(CallStartPart(0, self._call_id, _unquoted(tool[1])))
        elif self._held.strip() and not self._held.lstrip().startswith("{"):
            # No schema was in force after all: what the model writes is its answer.
            held, self._held, self._mode = self._held, "", self._plain
            self._plain(held, sink)

    def _answer(self, piece: str, sink: PartSink) -> None:
        self._held += piece
        ready = _PIECES.match(self._held)
        end = ready.end() if ready else 0
        sink.text(TextPart, _unquoted(self._held[:end]))
        self._held = self._held[end:]
        if self._held.startswith('"'):
            self._mode = self._over

    def _rest(self, piece: str, sink: PartSink) -> None:
        self._held += piece

    def _plain(self, piece: str, sink: PartSink) -> None:
        sink.text(TextPart, piece)

    def _over(self, piece: str, sink: PartSink) -> None:
        """Behind the answer only the end of the object comes."""


class GuidedDecoder(ChatDecoder):
    """Chat completion chunks whose content is a guided reply."""

    def __init__(self, peer: Peer, new_id: Callable[[], str]) -> None:
        super().__init__(peer, new_id)
        self._reader = GuidedReader(new_id)

    def _take(self, value: Object, sink: PartSink) -> None:
        super()._take(value, _Through(self._reader, sink))

    def _calls(self) -> Sequence[CallPart]:
        return self._reader.finish()


class _Through(PartSink):
    """Sends the answer's text through the reader; everything else goes on as it is."""

    def __init__(self, reader: GuidedReader, sink: PartSink) -> None:
        super().__init__()
        self._reader = reader
        self._sink = sink

    def text(self, kind: type[TextPart] | type[ThoughtPart], text: str) -> None:
        if kind is TextPart:
            self._reader.feed(text, self._sink)
        else:
            self._sink.text(kind, text)


def _unquoted(inside: str) -> str:
    value = json.loads(f'"{inside}"', strict=False)
    return value if isinstance(value, str) else ""
