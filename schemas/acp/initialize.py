"""`initialize` and `authenticate`: what a client says of itself, and what the agent answers.

The serving path answers from plain dicts before pydantic is there; this is the shape they must have.
"""

from typing import Annotated

from pydantic import Field, Strict

from schemas.acp.fields import Flag, Gate, Lenient, Meta
from schemas.base import WireModel


class FileSystemCapabilities(WireModel):
    """Which file methods the client answers."""

    read_text_file: Flag = False
    write_text_file: Flag = False


class ClientSessionCapabilities(WireModel):
    """Which gated kinds of `session/update` the client takes."""

    compaction: Gate = False
    notices: Gate = False


class ElicitationCapabilities(WireModel):
    """How the client can put questions to the person. `{}` is none of them."""

    form: Gate = False


class ClientCapabilities(WireModel):
    """What the client offers, as far as this agent uses it. Nothing in here can fail."""

    fs: Lenient[FileSystemCapabilities] = Field(default_factory=FileSystemCapabilities)
    terminal: Flag = False
    session: Lenient[ClientSessionCapabilities | None] = None
    elicitation: Lenient[ElicitationCapabilities | None] = None
    meta: Meta = None


class Implementation(WireModel):
    """Name and version of a program."""

    name: str
    version: str
    title: Lenient[str | None] = None


class InitializeParams(WireModel):
    """Params of `initialize`. The version is a uint16; strings and booleans are refused."""

    protocol_version: Annotated[int, Strict(), Field(ge=0, le=65535)]
    client_capabilities: Lenient[ClientCapabilities] = Field(default_factory=ClientCapabilities)
    client_info: Lenient[Implementation | None] = None


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


class AuthenticateParams(WireModel):
    """Params of `authenticate`: one of the ids that `initialize` named."""

    method_id: str
