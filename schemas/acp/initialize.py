"""What a client says in `initialize`: version, itself, and what it offers. Knows nothing of our answer."""

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
