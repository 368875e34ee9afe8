"""A tool of an MCP server as a tool of the session. Knows its server, not how that is reached.

What a server claims of its tools is not believed where it would spare a question: every call asks for the
action `other`, and a tool that claims to look only is shown as one that fetches, which is never begun early.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from runtime.events import ToolKind
from runtime.mcp.naming import tool_name
from runtime.mcp.remote import RemoteTool
from runtime.mcp.results import outcome
from runtime.mcp.schema import parameters_text
from runtime.mcp.server import Server
from runtime.mcp.text import one_line
from runtime.ports import ToolContext, ToolOutcome, ToolRequest, ToolView
from runtime.rows import ToolSpec
from runtime.unicode_text import mended

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
