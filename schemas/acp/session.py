"""Params of the methods that make, find and end sessions. Knows nothing of what a session holds.

`session/new` is on the way to the first answer, so MCP server models are loaded when a server is named.
"""

from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator

from schemas.acp.fields import AbsolutePath, NullIsEmpty
from schemas.base import WireModel

if TYPE_CHECKING:
    from schemas.acp.mcp import McpServer

    McpServers = tuple[McpServer, ...]
else:

    def _servers(value: object) -> object:
        if value is None or value == []:
            return ()
        from schemas.acp.mcp import SERVERS

        return SERVERS.validate_python(value)

    McpServers = Annotated[tuple[object, ...], BeforeValidator(_servers)]


class NewSessionParams(WireModel):
    """Params of `session/new`. Malformed directories or servers are refused, not dropped."""

    cwd: AbsolutePath
    mcp_servers: McpServers
    additional_directories: NullIsEmpty[tuple[AbsolutePath, ...]] = ()


class LoadSessionParams(WireModel):
    """Params of `session/load`."""

    session_id: str
    cwd: AbsolutePath
    mcp_servers: McpServers
    additional_directories: NullIsEmpty[tuple[AbsolutePath, ...]] = ()


class ResumeSessionParams(WireModel):
    """Params of `session/resume`: those of a load, but servers may be left out."""

    session_id: str
    cwd: AbsolutePath
    mcp_servers: McpServers = ()
    additional_directories: NullIsEmpty[tuple[AbsolutePath, ...]] = ()


class ForkSessionParams(ResumeSessionParams):
    """Params of `session/fork` (unstable): session_id is the session that is copied."""


class ListSessionsParams(WireModel):
    """Params of `session/list`. cwd filters exactly; cursor comes from the page before."""

    cwd: AbsolutePath | None = None
    cursor: str | None = None


class CloseSessionParams(WireModel):
    """Params of `session/close`."""

    session_id: str


class DeleteSessionParams(WireModel):
    """Params of `session/delete`."""

    session_id: str
