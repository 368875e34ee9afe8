"""A session's MCP servers, made of what its client and the settings name, and the command that shows them.

Knows settings and the client's params, nothing of how a server is reached.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from acp_server.config.settings import SessionConfig
from runtime.conversation.conversation import Conversation, LocalAnswer
from runtime.mcp.remote_tool import one_line
from runtime.mcp.settings import McpSettings, ServerSettings, Surroundings

if TYPE_CHECKING:
    from runtime.mcp.session_servers import Fleet, Standing
    from schemas.acp.mcp import HttpServer, McpServer, NamedValue, SseServer, StdioServer

COMMAND = "/mcp"


def session_fleet(
    config: SessionConfig,
    named: "tuple[McpServer, ...]",
    cwd: Path,
    roots: Callable[[], tuple[Path, ...]],
) -> "Fleet | None":
    """The servers of a session, not started; None when it has none. named: by its client."""
    settings = config.mcp or McpSettings()
    servers = settings.for_session(tuple(map(of_client, named)))
    if not servers:
        return None
    # Loaded here: most sessions have no server.
    from runtime.mcp.session_servers import fleet

    return fleet(servers, settings, Surroundings(cwd, roots, os.environ))


def of_client(server: "McpServer") -> ServerSettings:
    """A server as a client names it: without a type it is a child process."""
    kind = getattr(server, "type", None)
    if kind is None:
        child = cast("StdioServer", server)
        return ServerSettings(server.name, command=child.command, args=child.args, env=pairs(child.env))
    remote = cast("HttpServer | SseServer", server)
    return ServerSettings(server.name, remote.type, url=remote.url, headers=pairs(remote.headers))


def pairs(values: "Sequence[NamedValue]") -> dict[str, str]:
    """Variables or headers as a mapping; of two with one name the later one counts."""
    return {value.name: value.value for value in values}


def answering(fleet: "Fleet | None", otherwise: LocalAnswer) -> LocalAnswer:
    """Answers `/mcp` for these servers, and leaves all else."""
    if fleet is None:
        return otherwise

    async def answer(talk: Conversation, text: str) -> str | None:
        return shown(fleet.states()) if text.strip() == COMMAND else await otherwise(talk, text)

    return answer


async def show_no_servers(talk: Conversation, rest: str) -> str:
    """The answer in a session without servers."""
    return "No MCP server is configured, neither by the editor nor below `[mcp_servers]` in the settings."


def shown(servers: "Sequence[Standing]") -> str:
    """The servers as a list."""
    return "\n".join(["MCP servers of this session:", "", *map(line, servers)])


def line(server: "Standing") -> str:
    """`- github: ready, 12 tools`, with what went wrong."""
    few = f", {server.offered} of them offered to the model" if server.offered < server.tools else ""
    tools = f", {server.tools:,} {'tool' if server.tools == 1 else 'tools'}{few}" if server.tools else ""
    problem = f". {server.problem}" if server.problem else ""
    return f"- {one_line(server.name, 60)}: {server.state}{tools}{problem}"
