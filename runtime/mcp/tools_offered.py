"""The tools of all servers that a model is told of, within a budget, and the remark about what is missing.

A server with very many may not push out the others. Worked out anew when the tools have changed. Knows no
connection.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from runtime.history.request.budget import effective_context_budget
from runtime.history.rows.estimate import estimate_tool_schemas
from runtime.mcp.remote_tool import RemoteTool, one_line
from runtime.mcp.resources import resource_tools
from runtime.mcp.server import Server, State
from runtime.mcp.settings import McpSettings
from runtime.mcp.tool import McpTool, session_tool
from runtime.ports import Tool
from runtime.setup.session_setup import Setup
from runtime.values.profiles import Route

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Room:
    """What the tools of all servers may take together. tokens: of their schemas, estimated."""

    tools: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Priced(Generic[T]):
    """A tool and what telling it costs, in tokens."""

    tool: T
    tokens: int


def choose(offered: Mapping[str, Sequence[Priced[T]]], room: Room) -> dict[str, tuple[T, ...]]:
    """By server, what is told of its tools: the first that fit into the server's share.

    Every server gets the same share; what a small one leaves is shared by the larger ones. The result depends
    on nothing else, so the same servers give the same tools.
    """
    chosen: dict[str, tuple[T, ...]] = {}
    left = room
    by_size = sorted(offered, key=lambda name: (sum(priced.tokens for priced in offered[name]), name))
    for done, name in enumerate(by_size):
        servers = len(by_size) - done
        taken = _fitting(offered[name], Room(left.tools // servers, left.tokens // servers))
        chosen[name] = tuple(priced.tool for priced in taken)
        left = Room(left.tools - len(taken), left.tokens - sum(priced.tokens for priced in taken))
    return {name: chosen[name] for name in offered}


def _fitting(tools: Sequence[Priced[T]], share: Room) -> list[Priced[T]]:
    taken: list[Priced[T]] = []
    tokens = 0
    for priced in tools:
        if len(taken) < share.tools and tokens + priced.tokens <= share.tokens:
            taken.append(priced)
            tokens += priced.tokens
    return taken


SHARE = 4
"""Without a setting the schemas of all servers take at most a quarter of what a request may have."""
OURS = "mcp_"
"""The names of all tools made here begin so, and no other tool's does."""
LEFT_OUT = (
    "{offered:,} of its {tools:,} tools are offered to the model, as more would fill its context. "
    "`tools = [...]` below `[mcp_servers.NAME]` in the settings chooses which."
)

_REMARK = "MCP servers that are not available now, so that you cannot use their tools"


class Offering:
    """What is offered of a session's servers at a time."""

    def __init__(self, settings: McpSettings) -> None:
        self._settings = settings
        self._made: dict[str, tuple[tuple[RemoteTool, ...], tuple[McpTool, ...]]] = {}
        self._counts: dict[str, int] = {}

    def tools(self, servers: Sequence[Server], setup: Setup, route: Route) -> Mapping[str, Tool]:
        """The session's own tools, then those of the servers, by name."""
        offered = {server.name: self._tools_of(server) for server in servers}
        priced = {
            name: [Priced(tool, estimate_tool_schemas([tool.spec], setup.counter)) for tool in tools]
            for name, tools in offered.items()
        }
        chosen = choose(priced, self._room(setup, route))
        self._counts = {name: len(tools) for name, tools in chosen.items()}
        named = {name: tool for name, tool in setup.tools.items() if not name.startswith(OURS)}
        for tool in resource_tools([server for server in servers if server.offer.resources]):
            named[tool.spec.name] = tool
        for tools in chosen.values():
            for tool in tools:
                named.setdefault(tool.spec.name, tool)
        return setup.redaction.tools(named)

    def count(self, server: Server) -> int:
        """How many of a server's tools are offered."""
        return self._counts.get(server.name, 0)

    def few(self, server: Server) -> str:
        """A sentence when not all of a server's tools are offered, else ''."""
        tools, offered = len(server.offer.tools), self.count(server)
        return LEFT_OUT.format(offered=offered, tools=tools) if offered < tools else ""

    def remark(self, servers: Sequence[Server]) -> str:
        """What the model is told of servers that failed, '' for nothing."""
        failed = [
            f"{one_line(server.name, 60)} ({server.problem})"
            for server in servers
            if server.state in (State.FAILED, State.WAITING) and not server.offer.tools
        ]
        return f"{_REMARK}: {'; '.join(failed)}." if failed else ""

    def _tools_of(self, server: Server) -> tuple[McpTool, ...]:
        remote = server.offer.tools
        known = self._made.get(server.name)
        if known is None or known[0] is not remote:
            known = self._made[server.name] = remote, tuple(session_tool(server, tool) for tool in remote)
        return known[1]

    def _room(self, setup: Setup, route: Route) -> Room:
        tokens = self._settings.max_tool_tokens
        if tokens is None:
            tokens = effective_context_budget(setup.profile, route).dispatch_trim_budget // SHARE
        return Room(self._settings.max_tools, tokens)


def is_remark(row: str) -> bool:
    """Whether a system row is one of `Offering.remark`."""
    return row.startswith(_REMARK)
