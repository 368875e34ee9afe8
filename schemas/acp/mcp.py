"""The MCP servers that a client may name for a session. Knows not how to start or reach one.

A server without `type` is a child process on stdio; that is the oldest form and the one all clients send.
"""

from typing import Annotated, Literal

from pydantic import Discriminator, FailFast, Tag, TypeAdapter

from schemas.acp.fields import NullIsEmpty
from schemas.base import WireModel


class NamedValue(WireModel):
    """An environment variable or an HTTP header."""

    name: str
    value: str


class StdioServer(WireModel):
    """A server to start as a child process. `env` is added to the environment."""

    name: str
    command: str
    args: NullIsEmpty[tuple[str, ...]]
    env: NullIsEmpty[tuple[NamedValue, ...]]


class HttpServer(WireModel):
    """A server reached by streamable HTTP."""

    type: Literal["http"]
    name: str
    url: str
    headers: NullIsEmpty[tuple[NamedValue, ...]]


class SseServer(WireModel):
    """A server reached by server-sent events, which MCP itself has given up."""

    type: Literal["sse"]
    name: str
    url: str
    headers: NullIsEmpty[tuple[NamedValue, ...]]


def _kind(value: object) -> object:
    # Any other `type` is named in the error instead of being tried as a child process.
    return value.get("type", "stdio") if isinstance(value, dict) else getattr(value, "type", "stdio")


McpServer = Annotated[
    Annotated[StdioServer, Tag("stdio")]
    | Annotated[HttpServer, Tag("http")]
    | Annotated[SseServer, Tag("sse")],
    Discriminator(_kind),
]

SERVERS: TypeAdapter[tuple[McpServer, ...]] = TypeAdapter(Annotated[tuple[McpServer, ...], FailFast()])
"""Validates a whole `mcpServers` list."""
