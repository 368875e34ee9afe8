"""A tool of an MCP server as a tool of the session, its schema made into one that every provider takes.

What a server claims of its tools is not believed where it would spare a question: every call asks for the
action `other`, and a tool that claims to look only is shown as one that fetches, which is never begun early.
Providers refuse a whole request for one schema that they dislike, so one careless server would close the
session. The server itself still judges the arguments. Knows its server, not how that is reached.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from runtime.mcp.remote_tool import RemoteTool, one_line, tool_name
from runtime.mcp.resources import outcome
from runtime.mcp.server import Server
from runtime.ports import ToolContext, ToolOutcome, ToolRequest, ToolView
from runtime.values.events import ToolKind
from runtime.values.rows import ToolSpec
from runtime.values.texts import mended
from schemas.base import is_shallow

_NO_PARAMETERS = '{"type":"object","properties":{}}'
_BRANCHES = ("allOf", "anyOf", "oneOf")
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_DROPPED = ("$schema", "$id", "title", *_BRANCHES, "not", "if", "then", "else", "enum", "const")


def parameters_text(schema: Mapping[str, object]) -> str:
    """The schema as compact JSON: an object at the top, with properties and without branches there."""
    if not is_shallow(dict(schema)):
        return _NO_PARAMETERS
    kept = {name: value for name, value in schema.items() if name not in _DROPPED}
    properties = {name: value for name, value in _properties(schema) if _PROPERTY.fullmatch(name)}
    kept |= {"type": "object", "properties": properties}
    required = [name for name in _required(schema) if name in properties]
    kept.pop("required", None)
    if required:
        kept["required"] = required
    try:
        return orjson.dumps(kept).decode()
    except (TypeError, ValueError):
        return _NO_PARAMETERS


def _properties(schema: Mapping[str, object]) -> list[tuple[str, object]]:
    """Those of the top level, and of branches, which a model may have to choose among."""
    found: dict[str, object] = {}
    for part in (*_parts(schema), schema):
        inner = part.get("properties")
        if isinstance(inner, dict):
            found |= inner
    return list(found.items())


def _required(schema: Mapping[str, object]) -> list[str]:
    """What is needed in any case: branches that all hold count, branches to choose among do not."""
    wanted: dict[str, None] = {}
    for part in (schema, *_parts(schema, ("allOf",))):
        names = part.get("required")
        if isinstance(names, list):
            wanted |= dict.fromkeys(name for name in names if isinstance(name, str))
    return list(wanted)


def _parts(schema: Mapping[str, object], words: tuple[str, ...] = _BRANCHES) -> list[Mapping[str, object]]:
    branches = (schema.get(word) for word in words)
    return [
        part for branch in branches if isinstance(branch, list) for part in branch if isinstance(part, dict)
    ]


LONGEST_DESCRIPTION = 1024
"""Characters that every provider takes."""


@dataclass(slots=True)
class McpTool:
    """`spec.name` is the model's name for it, `remote.name` the server's."""

    spec: ToolSpec
    kind: ToolKind
    server: Server
    remote: RemoteTool

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        """`github: Create issue`."""
        return ToolView(f"{one_line(self.server.name, 60)}: {one_line(self.remote.title, 120)}")

    async def request(self, arguments: Mapping[str, object], context: ToolContext) -> ToolRequest:
        """Subject is `server:tool`, by the names that the settings and the server use."""
        return ToolRequest("other", f"{self.server.name}:{self.remote.name}", looks=self.remote.looks)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """Raises ToolError: the server is not there, refused the call, or took too long."""
        return outcome(await self.server.call(self.remote.name, arguments))


def session_tool(server: Server, remote: RemoteTool) -> McpTool:
    """The tool with a name and a schema that every provider takes."""
    words = mended(remote.description).strip() or remote.title
    spec = ToolSpec(
        tool_name(server.name, remote.name),
        words if len(words) <= LONGEST_DESCRIPTION else f"{words[: LONGEST_DESCRIPTION - 1]}…",
        parameters_text(remote.parameters),
    )
    return McpTool(spec, "fetch" if remote.looks else "other", server, remote)
