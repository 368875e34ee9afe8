"""Two tools by which a model finds and reads what MCP servers hold beside tools.

They are offered only while a server has resources.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runtime.errors import ToolError
from runtime.events import ToolKind
from runtime.mcp.results import contents
from runtime.mcp.server import Server
from runtime.mcp.text import one_line
from runtime.ports import Tool, ToolContext, ToolOutcome, ToolRequest, ToolView
from runtime.rows import ToolSpec

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
