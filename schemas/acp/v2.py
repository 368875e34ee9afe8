"""Params of the draft of ACP v2, where they differ from the first version. Knows nothing of our answers."""

from typing import Annotated, Literal

from pydantic import Field, Strict

from schemas.acp.fields import Gate, Lenient, Meta
from schemas.acp.initialize import ElicitationCapabilities, Implementation
from schemas.base import WireModel


class AuthCapabilities(WireModel):
    """Which ways to log in the client can carry out."""

    terminal: Gate = False


class ClientCapabilities(WireModel):
    """What the client offers, as far as this agent uses it. Nothing in here can fail."""

    auth: Lenient[AuthCapabilities | None] = None
    elicitation: Lenient[ElicitationCapabilities | None] = None
    meta: Meta = None


class InitializeParams(WireModel):
    """Params of `initialize`: who asks is required."""

    protocol_version: Annotated[int, Strict(), Field(ge=0, le=65535)]
    info: Implementation
    capabilities: Lenient[ClientCapabilities] = Field(default_factory=ClientCapabilities)


class ReplayFrom(WireModel):
    """Where a replay begins. Every cursor but the beginning is refused."""

    type: Literal["start"]


class ResumeSessionParams(WireModel):
    """Params of `session/resume`, as far as the first version does not have them."""

    session_id: str
    replay_from: ReplayFrom | None = None


class ConfigValue(WireModel):
    """The part of `session/set_config_option` that says what kind of value comes: here all are ids."""

    type: Literal["id"]
