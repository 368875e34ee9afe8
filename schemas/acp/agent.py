"""What an agent answers to `initialize`: itself, what it offers, how to log in. Knows no client.

The serving path answers from plain dicts before pydantic is there; this is the shape they must have.
"""

from typing import Annotated

from pydantic import Field

from schemas.acp.fields import Flag, Gate, Lenient, Meta
from schemas.acp.initialize import Implementation
from schemas.base import WireModel


class PromptCapabilities(WireModel):
    """Which content kinds a prompt may hold beside text and resource links."""

    image: Flag = False
    audio: Flag = False
    embedded_context: Flag = False


class McpCapabilities(WireModel):
    """Which ways beside a child process lead to an MCP server."""

    http: Flag = False
    sse: Flag = False


class SessionCapabilities(WireModel):
    """Which optional session methods there are."""

    list_sessions: Annotated[Gate, Field(alias="list")] = False
    resume: Gate = False
    close: Gate = False
    delete: Gate = False
    additional_directories: Gate = False
    fork: Gate = False


class AgentCapabilities(WireModel):
    """What an agent offers, as far as ours does."""

    load_session: Flag = False
    prompt_capabilities: Lenient[PromptCapabilities] = Field(default_factory=PromptCapabilities)
    mcp_capabilities: Lenient[McpCapabilities] = Field(default_factory=McpCapabilities)
    session_capabilities: Lenient[SessionCapabilities] = Field(default_factory=SessionCapabilities)
    meta: Meta = None


class AuthMethod(WireModel):
    """A way to log in. type: `terminal` for one that the client carries out, by the agent's own command with
    `args` behind it; else the agent does it itself.
    """

    id: str
    name: str
    description: Lenient[str | None] = None
    type: str = "agent"
    args: tuple[str, ...] = ()


class InitializeResult(WireModel):
    """Result of `initialize`."""

    protocol_version: int
    agent_capabilities: Lenient[AgentCapabilities] = Field(default_factory=AgentCapabilities)
    auth_methods: tuple[AuthMethod, ...] = ()
    agent_info: Lenient[Implementation | None] = None
