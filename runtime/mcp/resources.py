"""Two tools by which a model finds and reads what MCP servers hold beside tools, and answers made text.

The tools are offered only while a server has resources. Knows the protocol's JSON form, not the SDK.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson

from runtime.mcp.remote_tool import one_line
from runtime.mcp.server import Server
from runtime.ports import Tool, ToolContext, ToolOutcome, ToolRequest, ToolView
from runtime.values.errors import ToolError
from runtime.values.events import ToolKind
from runtime.values.rows import ToolSpec
from runtime.values.texts import mended

MOST_CHARACTERS = 2_097_152
"""Taken of one result; the caller cuts further."""

_EMPTY = "(the tool gave no output)"


def outcome(result: Mapping[str, object]) -> ToolOutcome:
    """A tool's result. Structured content is shown when nothing else is, since servers send it twice."""
    blocks = list(_blocks(result.get("content")))
    structured = result.get("structuredContent")
    if structured is not None and not any(block.get("type") == "text" for block in blocks):
        blocks.append({"type": "text", "text": _json(structured)})
    text = _joined(_shown(block) for block in blocks)
    return ToolOutcome(text or _EMPTY, failed=result.get("isError") is True)


def contents(result: Mapping[str, object]) -> str:
    """A resource that was read."""
    return _joined(_resource(part) for part in _blocks(result.get("contents"))) or "(the resource is empty)"


def _blocks(value: object) -> Iterator[Mapping[str, object]]:
    if isinstance(value, list):
        yield from (block for block in value if isinstance(block, dict))


def _joined(texts: Iterator[str]) -> str:
    text = mended("\n".join(text for text in texts if text))
    if len(text) <= MOST_CHARACTERS:
        return text
    return (
        f"{text[:MOST_CHARACTERS]}\n[... {len(text) - MOST_CHARACTERS:,} more characters were not taken in]"
    )


def _shown(block: Mapping[str, object]) -> str:
    kind = block.get("type")
    write = _WRITERS.get(kind) if isinstance(kind, str) else None
    return write(block) if write else f"[content of a kind that is not known here: {one_line(str(kind), 40)}]"


def _text(block: Mapping[str, object]) -> str:
    return str(block.get("text", ""))


def _media(block: Mapping[str, object]) -> str:
    kind = _word(block, "mimeType") or f"{block.get('type')} of an unnamed type"
    return f"[{kind}, about {_size(block.get('data')):,} bytes; it cannot be shown to you here]"


def _link(block: Mapping[str, object]) -> str:
    facts = [
        _word(block, "title") or _word(block, "name"),
        _word(block, "mimeType"),
        _word(block, "description"),
    ]
    told = "; ".join(fact for fact in facts if fact)
    return f"[resource {_word(block, 'uri')}{f': {told}' if told else ''}]"


def _embedded(block: Mapping[str, object]) -> str:
    inner = block.get("resource")
    return _resource(inner) if isinstance(inner, dict) else ""


def _resource(part: Mapping[str, object]) -> str:
    uri = _word(part, "uri")
    if "text" in part:
        return f"[{uri}]\n{part['text']}"
    kind = _word(part, "mimeType") or "bytes"
    return f"[{uri}: {kind}, about {_size(part.get('blob')):,} bytes, not text]"


def _size(encoded: object) -> int:
    return len(encoded) * 3 // 4 if isinstance(encoded, str) else 0


def _word(block: Mapping[str, object], name: str) -> str:
    value = block.get(name)
    return one_line(value, 300) if isinstance(value, str) else ""


def _json(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError):
        return ""


_WRITERS: Mapping[str, Callable[[Mapping[str, object]], str]] = {
    "text": _text,
    "image": _media,
    "audio": _media,
    "resource_link": _link,
    "resource": _embedded,
}

MOST_LISTED = 200

_LIST = ToolSpec(
    "mcp_list_resources",
    "List the resources (documents, records) that the connected MCP servers hold, with their URIs.",
    '{"type":"object","properties":{"server":{"type":"string","description":"Only this server\'s."}},'
    '"additionalProperties":false}',
)
_READ = ToolSpec(
    "mcp_read_resource",
    "Read a resource of an MCP server by its URI, as mcp_list_resources names it.",
    '{"type":"object","properties":{"server":{"type":"string"},"uri":{"type":"string"}},'
    '"required":["server","uri"],"additionalProperties":false}',
)


def resource_tools(servers: Sequence[Server]) -> tuple[Tool, ...]:
    """The two tools over servers that have resources; none without such a server."""
    return (ListResources(tuple(servers)), ReadResource(tuple(servers))) if servers else ()


@dataclass(slots=True)
class ListResources:
    """One line a resource."""

    servers: tuple[Server, ...]
    spec: ToolSpec = _LIST
    kind: ToolKind = "fetch"

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        """`List resources of docs`."""
        server = arguments.get("server")
        return ToolView(
            f"List resources of {one_line(server, 60) if isinstance(server, str) else 'MCP servers'}"
        )

    async def request(self, arguments: Mapping[str, object], context: ToolContext) -> ToolRequest:
        """Subject is `server:resources`, with the names of all servers that are asked."""
        asked = ",".join(server.name for server in self._asked(arguments))
        return ToolRequest("other", f"{asked}:resources", looks=True)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """Raises ToolError for a server that is not there."""
        lines = []
        for server in self._asked(arguments):
            found = [_line(resource) for resource in await server.resources()]
            more = [f"[{len(found) - MOST_LISTED:,} more]"] if len(found) > MOST_LISTED else []
            lines += [f"{server.name}:", *(found[:MOST_LISTED] or ["[none]"]), *more]
        return ToolOutcome("\n".join(lines))

    def _asked(self, arguments: Mapping[str, object]) -> tuple[Server, ...]:
        name = arguments.get("server")
        return self.servers if name in (None, "") else (_named(self.servers, name),)


@dataclass(slots=True)
class ReadResource:
    """A resource's text."""

    servers: tuple[Server, ...]
    spec: ToolSpec = _READ
    kind: ToolKind = "fetch"

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        """`Read docs://setup`."""
        return ToolView(f"Read {one_line(str(arguments.get('uri', 'a resource')), 120)}")

    async def request(self, arguments: Mapping[str, object], context: ToolContext) -> ToolRequest:
        """Subject is `server:uri`. Raises ToolError for arguments that name no resource."""
        server, uri = self._asked(arguments)
        return ToolRequest("other", f"{server.name}:{uri}", looks=True)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """Raises ToolError: no such server, no such resource."""
        server, uri = self._asked(arguments)
        return ToolOutcome(contents(await server.read(uri)))

    def _asked(self, arguments: Mapping[str, object]) -> tuple[Server, str]:
        uri = arguments.get("uri")
        if not isinstance(uri, str) or not uri:
            raise ToolError("mcp_read_resource needs uri: what mcp_list_resources names")
        return _named(self.servers, arguments.get("server")), uri


def _named(servers: Sequence[Server], name: object) -> Server:
    found = next((server for server in servers if server.name == name), None)
    if found is None:
        known = ", ".join(server.name for server in servers)
        raise ToolError(
            f"no MCP server with resources has the name {one_line(str(name), 60)!r}; there is {known}"
        )
    return found


def _line(resource: Mapping[str, object]) -> str:
    uri = resource.get("uri") or resource.get("uriTemplate") or ""
    facts = [resource.get(word) for word in ("title", "name", "mimeType", "description")]
    told = "; ".join(dict.fromkeys(one_line(fact, 120) for fact in facts if isinstance(fact, str) and fact))
    return f"{one_line(str(uri), 500)}{f'  {told}' if told else ''}"
